import { build } from 'esbuild'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { relayVersion } from '../packages/relay/src/version.ts'

const root = new URL('../', import.meta.url)

/** Bundles the relay into one readable file that runs on Node 20 and later. */
export async function buildRelay(outfile: string): Promise<void> {
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
    banner: {
      js: `#!/usr/bin/env node\n// platform-relay ${relayVersion} | license: ${license} | needs Node 20 or later`,
    },
  })
  await mkdir(dirname(outfile), { recursive: true })
  await writeFile(outfile, tidy(outputFiles[0]!.text))
}

/** Shortens the bundle but keeps it readable: tabs, short headings, no comments. */
function tidy(bundle: string): string {
  return bundle
    .replaceAll('// packages/relay/src/', '// ')
    .replaceAll(/^ +(\/\*\*[^]*?\*\/|\/\/.*)\n/gm, '')
    .replaceAll(/^(?: {2})+/gm, (indent) => '\t'.repeat(indent.length / 2))
}

// Usage: `node build-relay.ts <file>`
if (import.meta.main) await buildRelay(process.argv[2] ?? fileURLToPath(new URL('dist/relay.mjs', root)))
