import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { routes } from '@platform/contract/index'
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

/** Clients that a function of the API holds only if one of its endpoints says so. */
const clients = { queue: /client-sqs/, secret: /client-secrets-manager/ }

/** What of all that a bundle holds. */
export function unwantedIn({ name, metafile }: BuiltBundle): string[] {
  const files = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs))
  const shipped = files.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([file]) => file)
  const holds = ([, pattern]: [string, RegExp]) => shipped.some((file) => pattern.test(file))
  const idle = Object.entries(clients).filter(([kind]) => isServing(name) && !usesOf(name).includes(kind))
  return [...Object.entries(unwanted), ...idle].filter(holds).map(([what]) => what)
}

const endpointsOf = (name: string) => routes.filter((route) => route.function === name).map(({ endpoint }) => endpoint)
const isServing = (name: string): boolean => endpointsOf(name).length > 0

/** The kinds of things that the endpoints of a function say they use: `table`, `queue`, `secret` …. */
const usesOf = (name: string): (string | undefined)[] =>
  endpointsOf(name).flatMap(({ uses = [] }) => uses.map((use) => use.split(':')[0]))
