import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('../', import.meta.url))

/** Bundles the reference module into one file. Usage: `node scripts/build-hello.ts [file]` */
async function buildHello(outfile: string): Promise<void> {
  await build({
    absWorkingDir: root,
    entryPoints: ['packages/hello/src/main.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    charset: 'utf8',
    legalComments: 'none',
  })
}

const [outfile = 'dist/hello.mjs'] = process.argv.slice(2)
await buildHello(outfile)
