import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import * as z from 'zod'
import { installComponents } from './components.ts'

/** The resources that a deployment would make, as the configuration asks for them. */

const Resource = z.object({
  /** As in `aws:lambda/function:Function`. */
  type: z.string(),
  name: z.string(),
  inputs: z.record(z.string(), z.unknown()),
  state: z.record(z.string(), z.unknown()),
  parent: z.string().optional(),
  protect: z.boolean(),
  retainOnDelete: z.boolean(),
  /** What is there already under this name is taken over, not made. */
  import: z.string().optional(),
})
export type Resource = z.infer<typeof Resource>

const Graph = z.object({
  app: z.object({
    name: z.string(),
    removal: z.string(),
    protect: z.boolean(),
    providers: z.record(z.string(), z.unknown()),
  }),
  resources: z.array(Resource),
  outputs: z.record(z.string(), z.unknown()),
})
export type Graph = z.infer<typeof Graph>

const run = promisify(execFile)
const program = join(import.meta.dirname, 'evaluate.ts')

/**
 * Evaluates the configuration for a stage, in a process of its own: the components keep state, and what they throw late ends
 * it. `environment` is what an operator sets for a deployment. Rejects with what they say.
 */
export async function graphOf(stage: string, environment: Record<string, string> = {}): Promise<Graph> {
  await installComponents()
  const env = { ...process.env, ...environment, NODE_NO_WARNINGS: '1' }
  const folder = await mkdtemp(join(tmpdir(), 'graph-'))
  try {
    const { stdout } = await run(process.execPath, [program, stage, folder], { env, maxBuffer: 256 * 1024 * 1024 })
    return Graph.parse(JSON.parse(stdout))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The resources of a type. */
export const ofType = ({ resources }: Graph, type: string): Resource[] =>
  resources.filter((resource) => resource.type === type)
