import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fetchImage } from '@platform/worker/runtimes/fetch-image'
import { Images } from '@platform/worker/runtimes/images'
import { type LocalMode, openLocalRuntime } from '@platform/worker/runtimes/local-runtime'
import type { Deployment } from '@platform/core/modules/deployment'
import type { DeploymentSpec, ModuleResponse, ModuleRuntime } from '@platform/worker/runtimes/port'
import type { SupervisedOptions } from '@platform/worker/runtimes/supervised'
import { waitFor } from './wait-for.ts'
import { type MemoryRegistry, memoryRegistry } from './memory-registry.ts'
import { missingPrograms } from './installed-programs.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** Each mode with the reason for skipping its tests, or an empty string. */
export const localModes: readonly (readonly [Exclude<LocalMode, 'auto'>, string])[] = [
  ['process', ''],
  ['container', missingPrograms('runc')],
]

export async function localRuntime(mode: LocalMode, times: Pick<SupervisedOptions, 'readyMs' | 'pauseMs'> = {}) {
  const folder = await temporaryFolder()
  await chmod(folder.path, 0o711)
  // Blocks the state folder of runc, so that `auto` selects processes even if runc is installed.
  if (mode === 'auto') await mkdir(join(folder.path, 'run'))
  if (mode === 'auto') await writeFile(join(folder.path, 'run', 'runc'), '')
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
    line: (pattern: RegExp, from = 0): Promise<string> =>
      waitFor(`${pattern} is printed`, async () => lines.slice(from).find(({ line }) => pattern.test(line))?.line),
    leftovers: async (): Promise<string[]> =>
      (await readdir(join(folder.path, 'run'))).filter((name) => name !== 'runc'),
    unpacked: (): Promise<string[]> => readdir(join(folder.path, 'images')).catch(() => []),
    async [Symbol.asyncDispose]() {
      await runtime.close(0)
      await folder[Symbol.asyncDispose]()
    },
  }
}

let count = 0

export function deploymentSpecOf(
  image: { repository: string; digest: string },
  change: Partial<DeploymentSpec> = {},
): DeploymentSpec {
  count += 1
  const [moduleId = ''] = image.repository.split('/').slice(-1)
  const common = { version: '1.0.0', organisationId: 'org_1', startsItself: true, mayRunAsProcess: false }
  return { id: `${moduleId}-${count}`, moduleId, ...common, ...image, ...change }
}

export async function readProcesses(file: 'cmdline' | 'environ'): Promise<{ id: number; text: string }[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const read = async (id: string) => readFile(`/proc/${id}/${file}`, 'utf8').catch(() => '')
  return Promise.all(ids.map(async (id) => ({ id: Number(id), text: await read(id) })))
}

export const processesWith = async (...texts: string[]): Promise<number[]> =>
  (await readProcesses('cmdline')).flatMap(({ id, text }) => (texts.every((part) => text.includes(part)) ? [id] : []))

export const limits = { timeoutMs: 20_000, maxBytes: 1_000_000 }

export const textOf = ({ body }: ModuleResponse): string => Buffer.from(body).toString()

/** Evaluates an expression in a `puppet`. Returns its value, or `{ error }` with the code of the thrown error. */
export async function evaluateInModule(
  runtime: ModuleRuntime,
  deployment: Deployment,
  expression: string,
): Promise<any> {
  const request = { method: 'POST', path: '/', body: Buffer.from(expression) }
  const { value, ...failure } = JSON.parse(textOf(await runtime.request(deployment, request, limits)))
  return value === undefined ? failure : value
}
