// A server of the official SDK: `node server.js [--allow-unsandboxed]`, over stdio.
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { CallAuthority, CAPABILITY, GuardedProcess, killOnExit, run, SandboxedCommand } from 'plenipo-authority';
import { z } from 'zod';

const TIMEOUT_MS = 60_000;
/** From the server's own command line, which its operator wrote. */
const operator = process.argv.includes('--allow-unsandboxed') ? 'allow-unsandboxed' : 'require-launcher';

/** The result of a tool; what is refused is a tool error, which a model gets to read. */
async function answer(work) {
  try {
    const structuredContent = await work();
    return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
  } catch (error) {
    return { isError: true, content: [{ type: 'text', text: `refused: ${error.message}` }] };
  }
}

/** `sh -c COMMAND` under the policy of this call. */
async function runCommand(command, { _meta, signal }) {
  const authority = CallAuthority.fromMeta(_meta);
  const done = await run(new SandboxedCommand(authority, ['/bin/sh', '-c', command], { operator }), {
    timeoutMs: TIMEOUT_MS,
    signal,
  });
  const { exitCode, timedOut, sandboxed } = done;
  return { exitCode, stdout: done.stdout.toString(), stderr: done.stderr.toString(), timedOut, sandboxed };
}

let shell;
let turn = Promise.resolve();
let count = 0;

/** A line for the shell that stays. It was started under one policy and serves no other. */
async function replLine(line, { _meta }) {
  const authority = CallAuthority.fromMeta(_meta);
  if (!shell?.alive) shell = await GuardedProcess.start(new SandboxedCommand(authority, ['/bin/sh'], { operator }));
  const { stdin, stdout } = shell.use(authority);
  const mark = `--end-${++count}--`;
  stdin.write(`${line}\nprintf '\\n%s %s\\n' ${mark} "$?"\n`);
  const ended = new RegExp(`\\n${mark} (\\d+)\\n$`);
  return new Promise((resolve, reject) => {
    let said = '';
    const done = (settle, value) => {
      clearTimeout(timer);
      stdout.off('data', take).off('end', over);
      settle(value);
    };
    const over = () => {
      shell.close(); // Nobody knows what it does with the line, or what is still to come.
      done(reject, new Error('the shell ended or took too long'));
    };
    const take = (chunk) => {
      said += chunk;
      const found = ended.exec(said);
      if (found) done(resolve, { exitCode: Number(found[1]), stdout: said.slice(0, found.index) });
    };
    const timer = setTimeout(over, TIMEOUT_MS);
    stdout.on('data', take).on('end', over);
  });
}

function make() {
  const info = { name: 'plenipo-kit-typescript', version: '1' };
  const server = new McpServer(info, { capabilities: { experimental: CAPABILITY } });
  const command = { description: 'Run a shell command under the sandbox policy of this call' };
  server.registerTool('run', { ...command, inputSchema: z.object({ command: z.string() }) }, (args, context) =>
    answer(() => runCommand(args.command, context.mcpReq)),
  );
  const line = { description: 'Run a line in a shell that stays' };
  server.registerTool('repl', { ...line, inputSchema: z.object({ line: z.string() }) }, (args, context) => {
    const result = turn.then(() => answer(() => replLine(args.line, context.mcpReq)));
    turn = result;
    return result;
  });
  return server;
}

killOnExit();
serveStdio(make);
