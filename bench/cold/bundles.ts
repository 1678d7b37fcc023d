import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { usesOf } from '@platform/contract/endpoint'
import { routes } from '@platform/contract/index'
import { passages } from '@platform/contract/passage'
import { type Task, tasks } from '@platform/contract/task'
import { build } from 'esbuild'
import { bundle } from '../../scripts/bundle.ts'

/** A program as a process of its own loads it. */
export interface BuiltBundle {
  name: string
  path: string
  /** Of what is loaded before the handler is there. */
  bytes: number
  gzipBytes: number
  /** Of what is loaded when something needs it. */
  lateBytes: number
  /** The sources of what is loaded at first. */
  sources: readonly string[]
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)

/** A function as the deployment ships it. */
export async function buildFunction(name: string): Promise<BuiltBundle> {
  const { path, files, initial, sources } = await bundle(name)
  const contents = initial.map((file) => files.get(file) ?? Buffer.of())
  const bytes = sum(contents.map(({ length }) => length))
  return {
    name,
    path,
    bytes,
    gzipBytes: sum(contents.map((content) => gzipSync(content).length)),
    lateBytes: sum([...files.values()].map(({ length }) => length)) - bytes,
    sources: [...sources].flatMap(([source, left]) => (left > 0 ? [source] : [])),
  }
}

/** A bare handler as anybody would bundle it; `program` is its text, beside the files of the floor. */
export async function buildFloor(name: string, program: string): Promise<BuiltBundle> {
  const root = join(import.meta.dirname, '../..')
  const path = join(root, `dist/bench/${name.replaceAll(/\W+/g, '-')}.mjs`)
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    stdin: { contents: program, resolveDir: 'bench/floor', loader: 'ts' },
    outfile: path,
    write: false,
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
  const [{ contents } = { contents: Buffer.of() }] = outputFiles
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, contents)
  const sources = Object.keys(metafile.inputs)
  return { name, path, bytes: contents.length, gzipBytes: gzipSync(contents).length, lateBytes: 0, sources }
}

/** Code that no function needs, by the place that it comes from. */
const unwanted = {
  'locales of zod but English': /zod\/.*locales\/(?!en\.)/,
  'credentials from files, sign-in services and metadata': /^(?!environment:).*credential-provider-(?!env)/,
  'the maker of the OpenAPI document': /zod-openapi/,
}

/** Clients that a function holds at first only if something that it does says so. */
const clients = { queue: /client-sqs/, secret: /client-secrets-manager/, modules: /client-(?:lambda|ecr)/ }

/** What of all that a function loads at first. */
export function unwantedIn({ name, sources }: BuiltBundle): string[] {
  const holds = ([, pattern]: [string, RegExp]) => sources.some((source) => pattern.test(source))
  const idle = Object.entries(clients).filter(([kind]) => !kindsOf(name).has(kind))
  return [...Object.entries(unwanted), ...idle].filter(holds).map(([what]) => what)
}

/** The kinds of things that a function says it uses: `table`, `queue`, `secret` …. */
function kindsOf(name: string): Set<string> {
  const { [name]: task }: Record<string, Pick<Task, 'uses'>> = { ...tasks, [passages.function]: passages }
  const served = routes.filter((route) => route.function === name).flatMap(({ endpoint }) => usesOf(endpoint))
  return new Set([...served, ...(task?.uses ?? [])].map((use) => use.split(':')[0] ?? ''))
}
