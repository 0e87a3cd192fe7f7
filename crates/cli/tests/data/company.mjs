// A company: an identity provider and an authorization server (two instances of oidc-provider) and three protected
// MCP servers of the TypeScript SDK: `company.mjs MODULES`. The identity provider trades refresh tokens for signed
// identity assertions; the authorization server verifies those with the provider's keys, and takes each once.
// Prints `READY {json}`. `/stats` says what happened, `/secrets` every token that was given out, `/withdraw?server=NAME`
// is the administrator. It ends with its standard input.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const [modules] = process.argv.slice(2);
const from = (path) => import(pathToFileURL(join(modules, path)).href);
const { default: Provider, errors } = await from('oidc-provider/lib/index.js');
const sdk = await from('@modelcontextprotocol/server/dist/index.mjs');
const jose = await from('jose/dist/webapi/index.js');

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag';
const SECRET = 'resource-server-secret-0123456789';
const NAMES = ['crm', 'wiki', 'mail'];

const listen = (server) =>
  new Promise((done) => server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${server.address().port}`)));
const stats = { codes: 0, exchanged: 0, redeemed: 0, replayed: 0, denied: 0, revoked: 0, calls: 0, refusals: 0 };
const secrets = new Set();
const withdrawn = new Set();
const seen = new Set();

let identity;
let authorization;
const idp = await listen(createServer((request, response) => identity.callback()(request, response)));
const ras = await listen(createServer((request, response) => authorization.callback()(request, response)));
const resource = createServer((request, response) => serve(request, response).catch((error) => {
  console.error(error);
  response.writeHead(500).end();
}));
const origin = await listen(resource);
const urlOf = (name) => `${origin}/${name}/mcp`;

const pair = await jose.generateKeyPair('ES256', { extractable: true });
const key = { ...(await jose.exportJWK(pair.privateKey)), kid: 'company', alg: 'ES256', use: 'sig' };

identity = new Provider(idp, {
  jwks: { keys: [key] },
  clients: [{
    client_id: 'plenipo', application_type: 'native', token_endpoint_auth_method: 'none',
    redirect_uris: ['http://127.0.0.1/callback'], response_types: ['code'],
    grant_types: ['authorization_code', 'refresh_token', EXCHANGE], id_token_signed_response_alg: 'ES256',
  }],
  enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
  scopes: ['openid', 'offline_access'],
  pkce: { required: () => true },
  issueRefreshToken: async (context, client, code) => code.scopes.has('offline_access'),
  findAccount: async (context, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  ttl: { AccessToken: 600, RefreshToken: 86400, Session: 3600, Interaction: 600, Grant: 86400, IdToken: 600 },
  cookies: { keys: ['test'] },
  discovery: { identity_chaining_requested_token_types_supported: [ID_JAG] },
  features: { devInteractions: { enabled: true }, revocation: { enabled: true } },
});
const parameters = ['audience', 'resource', 'scope', 'requested_token_type', 'subject_token', 'subject_token_type'];
identity.registerGrantType(EXCHANGE, async (context) => {
  const { params, client } = context.oidc;
  secrets.add(params.subject_token);
  if (params.requested_token_type !== ID_JAG) throw new errors.InvalidRequest('only identity assertions');
  if (!params.subject_token_type.endsWith(':refresh_token')) throw new errors.InvalidRequest('only refresh tokens');
  const token = await identity.RefreshToken.find(params.subject_token);
  if (!token || token.isExpired || token.clientId !== client.clientId) throw new errors.InvalidGrant('no such token');
  if (params.audience !== ras) throw new errors.InvalidTarget('not an audience');
  if (withdrawn.has(params.resource)) {
    stats.denied++;
    throw new errors.AccessDenied('the administrator withdrew it');
  }
  const assertion = await new jose.SignJWT({ client_id: 'plenipo-company', resource: params.resource, scope: params.scope })
    .setProtectedHeader({ alg: 'ES256', kid: 'company', typ: 'oauth-id-jag+jwt' })
    .setIssuer(idp).setAudience(ras).setSubject(token.accountId).setJti(randomUUID())
    .setIssuedAt().setExpirationTime('5m').sign(pair.privateKey);
  secrets.add(assertion);
  stats.exchanged++;
  context.body = { access_token: assertion, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: 300, scope: params.scope };
}, parameters, ['scope']);

const keys = jose.createRemoteJWKSet(new URL(`${idp}/jwks`));
authorization = new Provider(ras, {
  jwks: { keys: [{ ...key, kid: 'resource' }] },
  clients: [
    {
      client_id: 'plenipo-company', token_endpoint_auth_method: 'none', redirect_uris: [], response_types: [],
      grant_types: [BEARER], id_token_signed_response_alg: 'ES256',
    },
    {
      client_id: 'resource', client_secret: SECRET, redirect_uris: [], response_types: [], grant_types: [],
      id_token_signed_response_alg: 'ES256',
    },
  ],
  enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
  scopes: ['use'],
  ttl: { ClientCredentials: 600 },
  cookies: { keys: ['test'] },
  discovery: { authorization_grant_profiles_supported: ['urn:ietf:params:oauth:grant-profile:id-jag'] },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: async () => true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: async (context, asked) => ({ scope: 'use', audience: asked, accessTokenFormat: 'opaque', accessTokenTTL: 600 }),
    },
  },
});
authorization.registerGrantType(BEARER, async (context) => {
  const { params, client } = context.oidc;
  const refuse = (reason) => { stats.refusals++; throw new errors.InvalidGrant(reason); };
  const { payload } = await jose.jwtVerify(params.assertion, keys, {
    issuer: idp, audience: ras, typ: 'oauth-id-jag+jwt', algorithms: ['ES256'],
    requiredClaims: ['sub', 'client_id', 'jti', 'exp', 'iat'],
  }).catch((error) => refuse(error.message));
  if (payload.client_id !== client.clientId) refuse('another client');
  if (!NAMES.map(urlOf).includes(payload.resource)) refuse('another resource');
  if (seen.has(payload.jti)) { stats.replayed++; refuse('a replay'); }
  seen.add(payload.jti);
  const server = new authorization.ResourceServer(payload.resource, {
    scope: 'use', audience: payload.resource, accessTokenFormat: 'opaque', accessTokenTTL: 600,
  });
  const token = new authorization.ClientCredentials({ client, scope: payload.scope, extra: { person: payload.sub } });
  token.resourceServer = server;
  const value = await token.save();
  secrets.add(value);
  stats.redeemed++;
  context.body = { access_token: value, token_type: 'Bearer', expires_in: 600, scope: payload.scope };
}, ['assertion']);

for (const [event, name] of Object.entries({ 'authorization_code.consumed': 'codes', 'refresh_token.destroyed': 'revoked' }))
  identity.on(event, () => stats[name]++);
for (const provider of [identity, authorization])
  for (const event of ['grant.error', 'authorization.error', 'server_error', 'introspection.error'])
    provider.on(event, (context, error) => console.error(event, error.message, error.error_description, error.error_detail, error.stack));

async function refusal(request, url) {
  const [scheme, token] = (request.headers.authorization ?? '').split(' ');
  if (scheme !== 'Bearer' || !token) return 'no token';
  const response = await fetch(`${ras}/token/introspection`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`resource:${SECRET}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({ token }),
  });
  const about = await response.json();
  if (!about.active) return 'inactive';
  if (![about.aud].flat().includes(url)) return `for ${about.aud}`;
}

const handlers = Object.fromEntries(NAMES.map((name) => [name, sdk.createMcpHandler(() => {
  const server = new sdk.McpServer({ name, version: '1' });
  server.registerTool('read', {}, async () => {
    stats.calls++;
    return { content: [{ type: 'text', text: `from ${name}` }] };
  });
  return server;
})]));

async function serve(request, response) {
  const json = (status, value, headers = {}) => {
    const body = JSON.stringify(value);
    const own = { 'content-type': 'application/json', 'content-length': body.length };
    response.writeHead(status, { ...own, ...headers }).end(body);
  };
  const { pathname, searchParams } = new URL(request.url, origin);
  if (pathname === '/stats') return json(200, stats);
  if (pathname === '/secrets') return json(200, [...secrets]);
  if (pathname === '/withdraw') return withdrawn.add(urlOf(searchParams.get('server'))), json(200, {});
  const published = pathname.match(/^\/\.well-known\/oauth-protected-resource\/(\w+)\/mcp$/)?.[1];
  if (published)
    return json(200, { resource: urlOf(published), authorization_servers: [ras], scopes_supported: ['use'] });
  const name = pathname.match(/^\/(\w+)\/mcp$/)?.[1];
  if (!NAMES.includes(name)) return json(404, {});
  const refused = await refusal(request, urlOf(name));
  if (refused) {
    if (refused !== 'no token') console.error('refused:', refused);
    const metadata = `${origin}/.well-known/oauth-protected-resource/${name}/mcp`;
    return json(401, {}, { 'www-authenticate': `Bearer resource_metadata="${metadata}"` });
  }
  const body = ['GET', 'HEAD'].includes(request.method) ? undefined : Readable.toWeb(request);
  const init = { method: request.method, headers: request.headers, body, duplex: 'half' };
  const answer = await handlers[name].fetch(new Request(urlOf(name), init));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  for await (const chunk of answer.body ?? []) response.write(chunk);
  response.end();
}

console.log(`READY ${JSON.stringify({ idp, ras, origin })}`);
process.stdin.on('end', () => process.exit(0)).resume();
