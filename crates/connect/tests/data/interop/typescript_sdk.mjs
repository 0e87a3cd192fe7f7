// A server of the TypeScript SDK: `typescript_sdk.mjs MODULES stdio`, or `… MODULES http PORT`.
// MODULES is a node_modules directory.
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const [modules, transport, port] = process.argv.slice(2);
const from = (path) => import(pathToFileURL(join(modules, path)).href);
const sdk = await from('@modelcontextprotocol/server/dist/index.mjs');
const { serveStdio } = await from('@modelcontextprotocol/server/dist/stdio.mjs');
const { z } = await from('zod/index.js');

const text = (text) => ({ content: [{ type: 'text', text }] });

function make() {
  const server = new sdk.McpServer({ name: 'interop-typescript', version: '1' });
  server.registerTool('echo', { inputSchema: z.object({ message: z.string() }) }, async ({ message }) =>
    text(`echo: ${message}`),
  );
  server.registerTool('kinds', {}, async () => ({
    content: [
      { type: 'text', text: 't' },
      { type: 'image', data: 'AAE=', mimeType: 'image/png' },
      { type: 'audio', data: 'AAE=', mimeType: 'audio/wav' },
      { type: 'resource_link', uri: 'data://l', name: 'l' },
      { type: 'resource', resource: { uri: 'data://b', blob: 'AAE=', mimeType: 'application/octet-stream' } },
    ],
  }));
  const progress = (context, progress, total) => {
    const progressToken = context.mcpReq._meta?.progressToken;
    const params = { progressToken, progress, total };
    return context.mcpReq.notify({ method: 'notifications/progress', params });
  };
  server.registerTool('steps', { inputSchema: z.object({ count: z.number() }) }, async ({ count }, context) => {
    for (let step = 1; step <= count; step++) await progress(context, step, count);
    return text('stepped');
  });
  server.registerTool('wait', {}, async (context) => {
    await progress(context, 1, 2);
    await new Promise((done) => setTimeout(done, 60_000).unref());
    return text('waited');
  });
  const name = z.object({ name: z.string().default('nobody') });
  server.registerTool('ask', {}, async (context) => {
    const answer = sdk.acceptedContent(context.mcpReq.inputResponses, 'who', name);
    if (answer) return text(`accept: ${answer.name}`);
    const who = sdk.inputRequired.elicit({ message: 'Who?', requestedSchema: name });
    return sdk.inputRequired({ inputRequests: { who } });
  });
  const notes = { mimeType: 'text/plain' };
  server.registerResource('notes', 'data://notes', notes, async (uri) => ({
    contents: [{ uri: uri.href, text: 'notes' }],
  }));
  const template = new sdk.ResourceTemplate('data://item/{number}', { list: undefined });
  server.registerResource('item', template, {}, async (uri, { number }) => ({
    contents: [{ uri: uri.href, text: `item ${number}` }],
  }));
  server.registerPrompt('greet', { argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}.` } }],
  }));
  return server;
}

if (transport === 'stdio') {
  serveStdio(make);
} else {
  const handler = sdk.createMcpHandler(make);
  createServer(async (request, response) => {
    const body = ['GET', 'HEAD'].includes(request.method) ? undefined : Readable.toWeb(request);
    const url = `http://127.0.0.1:${port}${request.url}`;
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const init = { method: request.method, headers: request.headers, body, duplex: 'half', signal: gone.signal };
    const answer = await handler.fetch(new Request(url, init));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (!answer.body) return response.end();
    try {
      for await (const chunk of answer.body) response.write(chunk);
    } catch {
      // The client went away.
    }
    response.end();
  }).listen(Number(port), '127.0.0.1');
}
