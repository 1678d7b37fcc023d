import { gzipSync } from 'node:zlib'
import { capabilitiesOf } from '@platform/contract/endpoint'
import { routes } from '@platform/contract/index'
import { modulePaths } from '@platform/contract/passage'
import { type Task, tasks } from '@platform/contract/task'
import { bundle } from '../../../scripts/bundle.ts'

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
  const { [name]: task }: Record<string, Pick<Task, 'capabilities'>> = { ...tasks, [modulePaths.function]: modulePaths }
  const served = routes.filter((route) => route.function === name).flatMap(({ endpoint }) => capabilitiesOf(endpoint))
  return new Set([...served, ...(task?.capabilities ?? [])].map((use) => use.split(':')[0] ?? ''))
}
