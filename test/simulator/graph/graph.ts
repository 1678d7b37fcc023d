import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import * as z from 'zod'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { installComponents } from './components.ts'

const Resource = z.object({
  type: z.string(),
  name: z.string(),
  inputs: z.record(z.string(), z.unknown()),
  state: z.record(z.string(), z.unknown()),
  parent: z.string().optional(),
  protect: z.boolean(),
  retainOnDelete: z.boolean(),
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
 * Evaluates the configuration for a stage in a separate process, because the components keep state and late errors end
 * the process. `environment` holds the operator's settings.
 */
export async function graphOf(stage: string, environment: Record<string, string> = {}): Promise<Graph> {
  await installComponents()
  const env = { ...process.env, ...environment, NODE_NO_WARNINGS: '1' }
  await using folder = await temporaryFolder()
  // Pulumi records the stack of each promise, which takes a fifth of the time with the default limit.
  const args = ['--stack-trace-limit=1', program, stage, folder.path]
  const { stdout } = await run(process.execPath, args, { env, maxBuffer: 256 * 1024 * 1024 })
  return Graph.parse(JSON.parse(stdout))
}

export const ofType = ({ resources }: Graph, type: string): Resource[] =>
  resources.filter((resource) => resource.type === type)
