"""HTTP + OAuth. F_MODE picks the token endpoint's habit: no-expiry (expires_in missing), zero, string ("3600"), keeps
(refresh answers carry no refresh_token; tokens live 2 s), form (form-encoded unless JSON is asked for), err200 (errors with status 200),
weird-type (token_type "user", extra nulls)."""
import os

from common_oauth import *

MODE = os.environ.get("F_MODE", "keeps")
auth, good = AS(), {}
stats = {"code": 0, "refresh": 0, "refresh_without_token": 0}
class H(Base):
    def do_GET(self):
        u = urlsplit(self.path)
        if u.path == "/stats":
            return self.reply(200, stats)
        if u.path.startswith("/.well-known/oauth-protected-resource"):
            return self.reply(200, {"resource": base + "/mcp", "authorization_servers": [base]})
        if u.path == "/.well-known/oauth-authorization-server":
            return self.reply(200, {"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token", "registration_endpoint": base + "/register",
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"], "scopes_supported": None})
        if u.path == "/authorize":
            to, why = auth.authorize(one(u.query))
            return self.reply(302, b"", Location=to) if to else self.reply(400, why, "text/plain")
        self.reply(405 if u.path == "/mcp" else 404)
    def do_POST(self):
        data = self.body()
        if self.path == "/register":
            return self.reply(201, {**auth.register(json.loads(data)), "client_secret": None, "scope": None})
        if self.path == "/token":
            f = one(data.decode())
            log("token", grant=f.get("grant_type"), accept=self.headers.get("Accept"))
            if MODE == "err200":
                return self.reply(200, {"ok": False, "error": "incorrect_client_credentials", "error_description": "the client secret is missing (S-77)"})
            if f.get("grant_type") == "refresh_token":
                stats["refresh"] += 1
                if f.get("refresh_token") != "rt-0":
                    stats["refresh_without_token"] += 1
                    return self.reply(400, {"error": "invalid_grant"})
            else:
                stats["code"] += 1
                q, why = auth.redeem(f)
                if not q:
                    return self.reply(400, {"error": "invalid_grant", "error_description": why})
            t = secrets.token_urlsafe(9)
            good[t] = time.time() + (2 if MODE in ("keeps", "zero") else 3600)
            r = {"access_token": t, "token_type": "Bearer", "expires_in": 2}
            if f.get("grant_type") != "refresh_token":
                r["refresh_token"] = "rt-0"
            if MODE == "no-expiry":
                r.pop("expires_in")
            if MODE == "zero":
                r["expires_in"] = 0
            if MODE == "string":
                r["expires_in"] = "3600"
            if MODE == "weird-type":
                r.update(token_type="user", scope=None, id_token=None, expires_in=3600.0)
            if MODE == "form" and "json" not in (self.headers.get("Accept") or ""):
                return self.reply(200, urlencode(r), "application/x-www-form-urlencoded; charset=utf-8")
            return self.reply(200, r)
        greet(self, data, good, base)
srv, base = listen(H)
forever(mcp=base + "/mcp", stats=base + "/stats")
