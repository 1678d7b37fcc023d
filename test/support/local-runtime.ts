import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fetchImage } from '@platform/worker/runtimes/fetch-image'
import { Images } from '@platform/worker/runtimes/images'
import { type LocalMode, openLocalRuntime } from '@platform/worker/runtimes/local-runtime'
import { type Deployment } from '@platform/core/modules/record'
import { type DeploymentSpec, type ModuleResponse, type ModuleRuntime } from '@platform/worker/runtimes/port'
import { type SupervisedOptions } from '@platform/worker/runtimes/supervised'
import { waitFor } from './wait-for.ts'
import { type MemoryRegistry, memoryRegistry } from './memory-registry.ts'
import { missingPrograms } from './installed-programs.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** The ways to run modules that this machine has, and for each why its tests are skipped: empty where they are not. */
export const localModes: readonly (readonly [Exclude<LocalMode, 'auto'>, string])[] = [
  ['process', ''],
  ['container', missingPrograms('runc')],
]

/** A real runtime with folders of its own, and a registry in memory. Disposing ends it. */
export async function localRuntime(mode: LocalMode, times: Pick<SupervisedOptions, 'readyMs' | 'pauseMs'> = {}) {
  const folder = await temporaryFolder()
  const registry: MemoryRegistry = memoryRegistry()
  const lines: { moduleId: string; line: string }[] = []
  const runtime = await openLocalRuntime({
    mode,
    images: new Images(join(folder.path, 'images'), (name, folder) => fetchImage(() => registry, name, folder)),
    runFolder: join(folder.path, 'run'),
    tokenOf: async (id) => `token of ${id}`,
    onLog: (moduleId, line) => lines.push({ moduleId, line }),
    ...times,
  })
  return {
    ...runtime,
    registry,
    folder: folder.path,
    lines,
    /** The first line that has a form, of those that are printed from `from` on. */
    line: (pattern: RegExp, from = 0): Promise<string> =>
      waitFor(`${pattern} is printed`, async () => lines.slice(from).find(({ line }) => pattern.test(line))?.line),
    /** What is left of running instances. */
    remains: async (): Promise<string[]> => (await readdir(join(folder.path, 'run'))).filter((name) => name !== 'runc'),
    /** The images that are unpacked. */
    unpacked: (): Promise<string[]> => readdir(join(folder.path, 'images')).catch(() => []),
    async [Symbol.asyncDispose]() {
      await runtime.close(0)
      await folder[Symbol.asyncDispose]()
    },
  }
}

let count = 0

/** An assignment of a module; its id is like no other of this process. */
export function deploymentSpecOf(
  image: { repository: string; digest: string },
  change: Partial<DeploymentSpec> = {},
): DeploymentSpec {
  count += 1
  const [moduleId = ''] = image.repository.split('/').slice(-1)
  const common = { version: '1.0.0', organisationId: 'org_1', startsItself: true }
  return { id: `${moduleId}-${count}`, moduleId, ...common, ...image, ...change }
}

/** The ids of processes, wherever they are contained, whose command line holds all of these texts. */
export async function processesWith(...texts: string[]): Promise<number[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const lines = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')))
  return ids.map(Number).filter((_, index) => texts.every((text) => lines[index]?.includes(text)))
}

export const limits = { timeoutMs: 20_000, maxBytes: 1_000_000 }

export const textOf = ({ body }: ModuleResponse): string => Buffer.from(body).toString()

/** What a `puppet` answers to an expression: its value, or `{ error }` with the code of what it threw. */
export async function evaluateInModule(
  runtime: ModuleRuntime,
  deployment: Deployment,
  expression: string,
): Promise<any> {
  const request = { method: 'POST', path: '/', body: Buffer.from(expression) }
  const { value, ...failure } = JSON.parse(textOf(await runtime.request(deployment, request, limits)))
  return value === undefined ? failure : value
}
