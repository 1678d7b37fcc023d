import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, type Metafile } from 'esbuild'
import { bundle } from '../../scripts/bundle.ts'

/** A function as one file. */
export interface BuiltBundle {
  name: string
  path: string
  bytes: number
  gzipBytes: number
  metafile: Metafile
}

const measured = async (name: string, path: string, metafile: Metafile): Promise<BuiltBundle> => ({
  name,
  path,
  bytes: (await stat(path)).size,
  gzipBytes: gzipSync(await readFile(path)).length,
  metafile,
})

/** A function as the deployment ships it. */
export async function buildFunction(name: string): Promise<BuiltBundle> {
  const { path, metafile } = await bundle(name)
  return measured(name, path, metafile)
}

/** A bare handler as anybody would bundle it. */
export async function buildFloor(name: string): Promise<BuiltBundle> {
  const root = join(import.meta.dirname, '../..')
  const path = join(root, `dist/bench/${name}.mjs`)
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [`bench/floor/${name}.ts`],
    outfile: path,
    bundle: true,
    minify: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    mainFields: ['module', 'main'],
    banner: {
      js: `import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);`,
    },
    metafile: true,
    legalComments: 'none',
  })
  return measured(`floor: ${name}`, path, metafile)
}

/** Code that no function needs, by the place that it comes from. */
const unwanted = {
  'locales of zod but English': /zod\/.*locales\/(?!en\.)/,
  'credentials from files, sign-in services and metadata': /credential-provider-(?!env)/,
  'the maker of the OpenAPI document': /zod-openapi/,
}

/** What of that a bundle holds. */
export const unwantedIn = ({ metafile }: BuiltBundle): string[] => {
  const files = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs))
  const shipped = files.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([file]) => file)
  return Object.entries(unwanted)
    .filter(([, pattern]) => shipped.some((file) => pattern.test(file)))
    .map(([what]) => what)
}
