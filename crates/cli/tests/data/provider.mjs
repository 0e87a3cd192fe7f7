// An OpenID provider (oidc-provider) and a protected MCP server of the TypeScript SDK that asks it about
// every token: `provider.mjs MODULES [dpop] [ttl=SECONDS]`. Prints `READY {json}`; `/stats` says what happened; it ends with
// its standard input.
import { createHash, generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const [modules, ...words] = process.argv.slice(2);
const dpop = words.includes('dpop');
const ttl = Number(words.find((word) => word.startsWith('ttl='))?.slice(4) ?? 3600);
const from = (path) => import(pathToFileURL(join(modules, path)).href);
const { default: Provider } = await from('oidc-provider/lib/index.js');
const sdk = await from('@modelcontextprotocol/server/dist/index.mjs');

const listen = (server) =>
  new Promise((done) => server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${server.address().port}`)));
const stats = { registered: 0, codes: 0, refreshed: 0, revoked: 0, reused: 0, devices: 0, clients: 0, proofs: 0, calls: 0 };
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const NIGHTLY = 'a secret/with +%odd: characters 0123456789';
const SECRET = 'resource-server-secret-0123456789';

let provider;
const identity = createServer((request, response) => provider.callback()(request, response));
const issuer = await listen(identity);
const resource = createServer((request, response) => serve(request, response).catch((error) => {
  console.error(error);
  response.writeHead(500).end();
}));
const origin = await listen(resource);
const url = `${origin}/mcp`;

provider = new Provider(issuer, {
  clients: [{
    client_id: 'resource', client_secret: SECRET, redirect_uris: [], response_types: [], grant_types: [],
  }, {
    client_id: 'nightly', client_secret: NIGHTLY, redirect_uris: [], response_types: [], grant_types: ['client_credentials'],
  }, {
    client_id: 'signer', redirect_uris: [], response_types: [], grant_types: ['client_credentials'],
    token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [{ ...key.publicKey.export({ format: 'jwk' }), kid: 'k1' }] },
  }],
  scopes: ['openid', 'offline_access', 'notes:read'],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async (context, client) => client.grantTypeAllowed('refresh_token'),
  findAccount: async (context, id) => ({ accountId: id, claims: async () => ({ sub: id, name: id }) }),
  ttl: { AccessToken: ttl, RefreshToken: 86400, Session: 3600, Interaction: 600, Grant: 86400, IdToken: 600, DeviceCode: 600 },
  cookies: { keys: ['test'] },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true, allowedPolicy: async () => true },
    deviceFlow: { enabled: true },
    dPoP: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: async () => url,
      useGrantedResource: async () => true,
      getResourceServerInfo: async (context, asked) => {
        if (asked !== url) throw new Error(`not a resource: ${asked}`);
        return { scope: 'notes:read', audience: url, accessTokenFormat: 'opaque' };
      },
    },
  },
});
const granted = {
  client_credentials: 'clients', authorization_code: 'codes', refresh_token: 'refreshed', 'urn:ietf:params:oauth:grant-type:device_code': 'devices',
};
provider.on('registration_create.success', () => stats.registered++);
provider.on('grant.success', (context) => stats[granted[context.oidc.params.grant_type]]++);
provider.on('grant.revoked', () => stats.revoked++);
provider.on('grant.error', (context, error) => {
  if (error.error === 'invalid_grant') stats.reused++;
  console.error('grant.error', error.error, error.error_description, error.error_detail);
});
for (const event of ['authorization.error', 'registration_create.error', 'server_error', 'revocation.error'])
  provider.on(event, (context, error) => console.error(event, error.message, error.error_description, error.error_detail));

async function introspect(token) {
  const response = await fetch(`${issuer}/token/introspection`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`resource:${SECRET}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({ token }),
  });
  return response.json();
}

/// Whether a proof belongs to this token, method and URL; its key is the one that the token is bound to.
async function proven(request, token, bound) {
  const jose = await from('jose/dist/webapi/index.js');
  const proof = request.headers.dpop ?? '';
  const { payload, protectedHeader } = await jose.jwtVerify(proof, jose.EmbeddedJWK, { typ: 'dpop+jwt' });
  const thumbprint = await jose.calculateJwkThumbprint(protectedHeader.jwk);
  const ath = createHash('sha256').update(token).digest('base64url');
  stats.proofs++;
  return thumbprint === bound && payload.htm === request.method && payload.htu === url && payload.ath === ath;
}

async function refusal(request) {
  const [scheme, token] = (request.headers.authorization ?? '').split(' ');
  if (!token) return 'no token';
  const about = await introspect(token);
  const bound = about.cnf?.jkt;
  if (scheme !== (bound ? 'DPoP' : 'Bearer') || (dpop && !bound)) return `scheme ${scheme}`;
  if (!about.active) return 'inactive';
  if (![about.aud].flat().includes(url)) return `for ${about.aud}`;
  if (!`${about.scope}`.split(' ').includes('notes:read')) return `scope ${about.scope}`;
  if (bound && !(await proven(request, token, bound))) return 'proof';
}

const handler = sdk.createMcpHandler(() => {
  const server = new sdk.McpServer({ name: 'notes', version: '1' });
  server.registerTool('read', {}, async () => {
    stats.calls++;
    return { content: [{ type: 'text', text: 'a note' }] };
  });
  return server;
});

async function serve(request, response) {
  const json = (status, value, headers = {}) => {
    const body = JSON.stringify(value);
    const own = { 'content-type': 'application/json', 'content-length': body.length };
    response.writeHead(status, { ...own, ...headers }).end(body);
  };
  if (request.url === '/stats') return json(200, stats);
  if (request.url === '/.well-known/oauth-protected-resource/mcp')
    return json(200, {
      resource: url, authorization_servers: [issuer], scopes_supported: ['notes:read'],
      bearer_methods_supported: ['header'], dpop_bound_access_tokens_required: dpop,
    });
  if (request.url !== '/mcp') return json(404, {});
  const refused = await refusal(request);
  if (refused) {
    if (refused !== 'no token') console.error('refused:', refused);
    const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
    const scheme = dpop ? 'DPoP' : 'Bearer';
    return json(401, {}, {
      'www-authenticate': `${scheme} resource_metadata="${metadata}", scope="openid offline_access notes:read"`,
    });
  }
  const body = ['GET', 'HEAD'].includes(request.method) ? undefined : Readable.toWeb(request);
  const init = { method: request.method, headers: request.headers, body, duplex: 'half' };
  const answer = await handler.fetch(new Request(url, init));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  for await (const chunk of answer.body ?? []) response.write(chunk);
  response.end();
}

console.log(`READY ${JSON.stringify({ mcp: url, stats: `${origin}/stats`, issuer, secret: NIGHTLY, pem: key.privateKey.export({ format: 'pem', type: 'pkcs8' }) })}`);
// Nobody reads further: what the provider says goes where its warnings go.
console.log = console.info = console.error;
process.stdin.on('end', () => process.exit(0)).resume();
