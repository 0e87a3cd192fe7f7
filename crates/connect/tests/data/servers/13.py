"""HTTP + OAuth. `read` needs scope files:read, `write` needs files:write. A token without it gets 403 insufficient_scope.
Refreshing never widens the scope. The AS refuses scopes it does not know (offline_access is unknown)."""
from common_oauth import *

auth, tok = AS(), {}
KNOWN = {"files:read", "files:write"}
stats = {"authorize": [], "refresh": 0, "forbidden": 0}
class H(Base):
    def do_GET(self):
        u = urlsplit(self.path)
        if u.path == "/stats":
            return self.reply(200, stats)
        if u.path.startswith("/.well-known/oauth-protected-resource"):
            return self.reply(200, {"resource": base + "/mcp", "authorization_servers": [base], "scopes_supported": sorted(KNOWN)})
        if u.path == "/.well-known/oauth-authorization-server":
            return self.reply(200, {"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token", "registration_endpoint": base + "/register",
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"], "scopes_supported": sorted(KNOWN)})
        if u.path == "/authorize":
            q = one(u.query)
            stats["authorize"].append(q.get("scope"))
            unknown = set((q.get("scope") or "").split()) - KNOWN
            if unknown:
                return self.reply(302, b"", Location=q.get("redirect_uri", "/") + "?" + urlencode({"error": "invalid_scope", "error_description": "unknown scope " + " ".join(sorted(unknown)), "state": q.get("state", "")}))
            to, why = auth.authorize(q)
            return self.reply(302, b"", Location=to) if to else self.reply(400, why, "text/plain")
        self.reply(405 if u.path == "/mcp" else 404)
    def grant(self, scope):
        a, r = secrets.token_urlsafe(9), secrets.token_urlsafe(9)
        tok[a] = tok[r] = scope
        self.reply(200, {"access_token": a, "refresh_token": r, "token_type": "Bearer", "expires_in": 3600, "scope": " ".join(sorted(scope))})
    def do_POST(self):
        data = self.body()
        if self.path == "/register":
            return self.reply(201, auth.register(json.loads(data)))
        if self.path == "/token":
            f = one(data.decode())
            if f.get("grant_type") == "refresh_token":
                stats["refresh"] += 1
                s = tok.get(f.get("refresh_token"))
                return self.grant(s) if s is not None else self.reply(400, {"error": "invalid_grant"})
            q, why = auth.redeem(f)
            return self.grant(set((q.get("scope") or "").split())) if q else self.reply(400, {"error": "invalid_grant", "error_description": why})
        s = tok.get(bearer(self.headers))
        prm = 'resource_metadata="' + base + '/.well-known/oauth-protected-resource/mcp"'
        if s is None:
            return self.reply(401, {}, WWW_Authenticate='Bearer scope="files:read", ' + prm)
        m = json.loads(data)
        i = m.get("id")
        if i is None:
            return self.reply(202)
        if m["method"] == "tools/call":
            n = m["params"]["name"]
            if n == "never" or "files:" + n not in s:
                stats["forbidden"] += 1
                return self.reply(403, {"error": "insufficient_scope"}, WWW_Authenticate='Bearer error="insufficient_scope", scope="files:%s", error_description="tool needs more", %s' % ("write" if n == "never" else n, prm))
            return self.rpc(i, text(n + " done"))
        r = {"initialize": lambda: init_result(m), "tools/list": lambda: {"tools": [tool("read"), tool("write"), tool("never")]}}.get(m["method"])
        self.rpc(i, r()) if r else self.rpc_error(i, -32601, "method not found")
srv, base = listen(H)
forever(mcp=base + "/mcp", stats=base + "/stats")
