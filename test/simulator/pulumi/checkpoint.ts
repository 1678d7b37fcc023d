import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as z from 'zod'

/** The state of the engine between two runs. SST stores the file in a bucket of the account. */

const Entry = z.object({
  urn: z.string(),
  custom: z.boolean(),
  id: z.string().optional(),
  type: z.string(),
  inputs: z.record(z.string(), z.unknown()).default({}),
  outputs: z.record(z.string(), z.unknown()).default({}),
  parent: z.string().optional(),
  dependencies: z.array(z.string()).optional(),
  protect: z.boolean().optional(),
  retainOnDelete: z.boolean().optional(),
})
export type Entry = z.infer<typeof Entry>

const Checkpoint = z.object({
  checkpoint: z.object({ latest: z.object({ resources: z.array(Entry).nullish() }).nullish() }),
})

export type Stack = readonly [organisation: string, project: string, stage: string]

const fileOf = (backend: string, [, project, stage]: Stack): string =>
  join(backend, '.pulumi/stacks', project, `${stage}.json`)

export async function readCheckpoint(backend: string, stack: Stack): Promise<Entry[]> {
  const { checkpoint } = Checkpoint.parse(JSON.parse(await readFile(fileOf(backend, stack), 'utf8')))
  return checkpoint.latest?.resources ?? []
}

export async function writeCheckpoint(backend: string, stack: Stack, resources: readonly Entry[]): Promise<void> {
  const manifest = { time: new Date().toISOString(), magic: '', version: 'v3.215.0' }
  const checkpoint = { stack: stack.join('/'), latest: { manifest, resources } }
  const file = fileOf(backend, stack)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, JSON.stringify({ version: 3, checkpoint }))
}
