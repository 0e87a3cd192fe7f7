"""HTTP + OAuth by an authorization server that compares byte for byte. F_MODE is JSON: `redirect`, the one redirect address
that it knows; `resource`, what follows the server's origin in the resource's name; `assertion`, a file with the JWT that it
takes; `slow`, for how many seconds a refresh waits. Tokens live 2 s; a refresh token works once. What it refuses it tells of in `refused`, and everything secret that it saw or made in `secrets`."""
import os

from common_oauth import *

MODE = json.loads(os.environ.get("F_MODE") or "{}")
auth, good, refresh = AS(), {}, set()
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
stats = {"code": 0, "assertions": [], "asked": 0, "refresh": 0, "reused": 0, "secrets": [], "refused": [], "resources": []}

def wrong(parts, where):
    """What is not as it should be in a request."""
    want = base + MODE.get("resource", "/mcp")
    stats["resources"].append(parts.get("resource"))
    if parts.get("resource") != want:
        return refuse(f"{where}: resource {parts.get('resource')} is not {want}")
    redirect = MODE.get("redirect")
    if redirect and "redirect_uri" in parts and parts["redirect_uri"] != redirect:
        return refuse(f"{where}: redirect_uri {parts['redirect_uri']} is not {redirect}")

def refuse(why):
    stats["refused"].append(why)
    return why

class H(Base):
    def do_GET(self):
        u = urlsplit(self.path)
        if u.path == "/stats":
            return self.reply(200, stats)
        if u.path.startswith("/.well-known/oauth-protected-resource"):
            return self.reply(200, {"resource": base + MODE.get("resource", "/mcp"), "authorization_servers": [base]})
        if u.path == "/.well-known/oauth-authorization-server":
            return self.reply(200, {"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
                "registration_endpoint": base + "/register", "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"]})
        if u.path == "/authorize":
            why = wrong(one(u.query), "authorize")
            to, why = (None, why) if why else auth.authorize(one(u.query))
            return self.reply(302, b"", Location=to) if to else self.reply(400, why, "text/plain")
        self.reply(405 if u.path == "/mcp" else 404)
    def do_POST(self):
        data = self.body()
        if self.path == "/register":
            meta = json.loads(data)
            if MODE.get("redirect") and meta["redirect_uris"] != [MODE["redirect"]]:
                refuse(f"register: {meta['redirect_uris']}")
                return self.reply(400, {"error": "invalid_redirect_uri"})
            return self.reply(201, auth.register(meta))
        if self.path == "/token":
            f = one(data.decode())
            stats["secrets"] += [f[name] for name in ("code", "code_verifier", "refresh_token", "assertion") if name in f]
            why = wrong(f, f.get("grant_type"))
            if why:
                return self.reply(400, {"error": "invalid_target", "error_description": why})
            if f.get("grant_type") == "refresh_token":
                stats["asked"] += 1
                time.sleep(MODE.get("slow", 0))
                if f.get("refresh_token") not in refresh:
                    stats["reused"] += 1
                    return self.reply(400, {"error": "invalid_grant"})
                refresh.remove(f["refresh_token"])
                stats["refresh"] += 1
            elif f.get("grant_type") == JWT_BEARER:
                stats["assertions"].append(f.get("assertion"))
                with open(MODE["assertion"]) as file:
                    if f.get("assertion") != file.read().strip():
                        return self.reply(400, {"error": "invalid_grant"})
            else:
                q, why = auth.redeem(f)
                if not q:
                    return self.reply(400, {"error": "invalid_grant", "error_description": why})
                stats["code"] += 1
            t, r = secrets.token_urlsafe(9), secrets.token_urlsafe(9)
            good[t] = time.time() + 2
            refresh.add(r)
            stats["secrets"] += [t, r]
            return self.reply(200, {"access_token": t, "token_type": "Bearer", "expires_in": 2, "refresh_token": r})
        greet(self, data, good, base)
srv, base = listen(H)
forever(mcp=base + "/mcp", stats=base + "/stats")
