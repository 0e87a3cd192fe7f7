"""Modern, over stdio: each tool asks once, then says what it was answered."""
from common import *

CAPS = json.loads(os.environ.get("F_CAPS", '{"tools":{}}'))
FORM = {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}}}

for m in messages():
    method, i, params = m.get("method"), m.get("id"), m.get("params") or {}
    if method == "server/discover":
        ok(i, {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": CAPS})
    elif method == "tools/list":
        ok(i, {"resultType": "complete", "tools": [tool("ask")]})
    elif method == "tools/call" and "inputResponses" in params:
        ok(i, {"resultType": "complete", **text(json.dumps(params["inputResponses"], sort_keys=True))})
    elif method == "tools/call":
        ok(i, {"resultType": "input_required", "inputRequests": {"k": {"method": "elicitation/create", "params": FORM}},
               "requestState": "s"})
    elif i is not None:
        fail(i, -32601, "method not found")
