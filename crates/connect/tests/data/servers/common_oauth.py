"""What the fake servers with an authorization server share: it consents at once, checks PKCE S256, and takes a code once."""
from common_http import *

import base64, hashlib, secrets
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlencode, urlsplit

class AS:
    """Tiny authorization server: consents at once, checks PKCE S256, single-use codes."""
    def __init__(self):
        self.codes, self.clients = {}, {}
    def register(self, meta):
        cid = "dcr-" + secrets.token_hex(4)
        self.clients[cid] = meta
        log("register", meta=meta, client_id=cid)
        return {**meta, "client_id": cid, "client_id_issued_at": int(time.time())}
    def authorize(self, q, iss=None):
        """q: dict of single values; returns the redirect target, or None with a reason."""
        log("authorize", q=q)
        if q.get("response_type") != "code" or not q.get("redirect_uri"):
            return None, "response_type/redirect_uri"
        if q.get("code_challenge_method") != "S256" or not q.get("code_challenge"):
            return None, "PKCE S256 is required"
        code = secrets.token_urlsafe(12)
        self.codes[code] = q
        back = {"code": code, "state": q.get("state", "")}
        if iss:
            back["iss"] = iss
        sep = "&" if "?" in q["redirect_uri"] else "?"
        return q["redirect_uri"] + sep + urlencode(back), None
    def redeem(self, form):
        q = self.codes.pop(form.get("code", ""), None)
        if not q:
            return None, "unknown or used code"
        want = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        if want != q["code_challenge"]:
            return None, "PKCE mismatch"
        if form.get("redirect_uri") != q["redirect_uri"]:
            return None, "redirect_uri differs from the authorization request"
        return q, None

def one(qs):
    return {k: v[-1] for k, v in parse_qs(qs, keep_blank_values=True).items()}

def bearer(h):
    a = h.get("Authorization") or ""
    return a[7:].strip() if a.lower().startswith("bearer ") else None

def greet(handler, data, good, base):
    """The MCP side: one tool, for whoever has a token that is good until some time."""
    if good.get(bearer(handler.headers), 0) < time.time():
        return handler.reply(401, {}, WWW_Authenticate='Bearer resource_metadata="' + base + '/.well-known/oauth-protected-resource/mcp"')
    m = json.loads(data)
    i = m.get("id")
    if i is None:
        return handler.reply(202)
    r = {"initialize": lambda: init_result(m), "tools/list": lambda: {"tools": [tool("hi")]}, "tools/call": lambda: text("hi")}.get(m["method"])
    handler.rpc(i, r()) if r else handler.rpc_error(i, -32601, "method not found")
