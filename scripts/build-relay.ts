import { build, type Plugin } from 'esbuild'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { exitWithUsage, parseCommandLine, resolveFromCaller } from '@platform/local/command-line'
import { relayVersion } from '../packages/relay/src/version.ts'

const root = new URL('../', import.meta.url)

/** A version of the relay with the public key that verifies later versions. */
export interface RelayRelease {
  version: string
  publicKeyPem: string
}

/**
 * Bundles the relay into one file that runs on Node 20 and later. The code is readable, except the library `ws`.
 * Without `release`, the relay cannot update itself.
 */
export async function buildRelay(outfile: string, release?: RelayRelease): Promise<void> {
  const { license }: { license: string } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))
  const { outputFiles } = await build({
    absWorkingDir: fileURLToPath(root),
    entryPoints: ['packages/relay/src/main.ts'],
    write: false,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    charset: 'utf8',
    plugins: [webSocketLibrary],
    ...(release && { define: { builtRelease: JSON.stringify(release) } }),
  })
  const heading = `#!/usr/bin/env node\n// platform-relay ${release?.version ?? relayVersion} | license: ${license} | needs Node 20 or later\n`
  await mkdir(dirname(outfile), { recursive: true })
  await writeFile(outfile, heading + tidy(outputFiles[0]!.text) + (await webSocketCode()))
}

/** Replaces the library `ws` with a call of the minified code that follows the relay. */
const webSocketLibrary: Plugin = {
  name: 'ws',
  setup(builder) {
    builder.onResolve({ filter: /^ws$/ }, ({ path }) => ({ path, namespace: 'ws' }))
    builder.onLoad({ filter: /.*/, namespace: 'ws' }, () => ({
      contents: 'export const WebSocket = webSocketLibrary()',
    }))
  },
}

async function webSocketCode(): Promise<string> {
  const folder = dirname(createRequire(join(fileURLToPath(root), 'packages/relay/package.json')).resolve('ws'))
  const { version }: { version: string } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  const notice = await readFile(join(folder, 'LICENSE'), 'utf8')
  const { outputFiles } = await build({
    entryPoints: [join(folder, 'lib/websocket.js')],
    write: false,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    charset: 'utf8',
    // These packages are optional native code.
    external: ['bufferutil', 'utf-8-validate'],
  })
  return [
    `/* ws ${version}\n\n${notice.trim()} */`,
    `import { createRequire as requireOf } from "node:module";`,
    `function webSocketLibrary() { const module = { exports: {} }; (function (require, module) {`,
    outputFiles[0]!.text.trim(),
    `})(requireOf(import.meta.url), module); return module.exports }`,
    '',
  ].join('\n')
}

/** Shortens the bundle but keeps it readable: tabs, short headings, no indented comments. */
function tidy(bundle: string): string {
  return bundle
    .replaceAll('// packages/relay/src/', '// ')
    .replaceAll(/^ +(\/\*\*[^]*?\*\/|\/\/.*)\n/gm, '')
    .replaceAll(/^(?: {2})+/gm, (indent) => '\t'.repeat(indent.length / 2))
}

if (import.meta.main) {
  const usage = `npm run build:relay -- [FILE]

Bundles the relay into FILE; default: dist/relay.mjs.`
  const [file, ...excess] = parseCommandLine(usage, { allowPositionals: true }).positionals
  if (excess.length > 0) exitWithUsage('Name one file.', usage)
  await buildRelay(file === undefined ? fileURLToPath(new URL('dist/relay.mjs', root)) : resolveFromCaller(file))
}
