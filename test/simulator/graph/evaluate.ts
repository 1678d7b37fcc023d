/** Evaluates the deployment's configuration for a stage and prints its resource graph as JSON. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { resolveData, stateOf } from './answers.ts'
import { startDeployer } from './deployer.ts'
import { App, bundleApp, bundleProgram, type ProjectFolders } from './program.ts'

const projectDir = join(import.meta.dirname, '../../..')
const [stage = 'dev', workDir = join(projectDir, '.sst')] = process.argv.slice(2)
const folders: ProjectFolders = { projectDir, platformDir: join(projectDir, '.sst/platform'), workDir, stage }

async function load(file: string): Promise<any> {
  try {
    return await import(pathToFileURL(file).href)
  } finally {
    await rm(file, { force: true })
  }
}

const { default: config } = await load(await bundleApp(folders))
const app = App.parse(config.app({ stage }))

await using deployer = await startDeployer()
process.env['SST_SERVER'] = deployer.url
const program = await load(await bundleProgram(folders, app))
const { runtime } = program.pulumi

const resources: Record<string, any>[] = []
const options = new Map<string, any>()
await runtime.setMocks(
  {
    newResource: ({ type, name, inputs, custom }: any) => {
      const state = stateOf({ type, name, inputs })
      resources.push({ type, name, custom: custom === true, inputs, state })
      return { id: custom === true ? `${name}-id` : undefined, state }
    },
    call: ({ token, inputs }: any) => resolveData(token, inputs),
  },
  app.name,
  stage,
  false,
  'organization',
)
const outputs = await runtime.runInPulumiStack(async () => {
  runtime.registerStackTransformation(({ name, opts }: any) => {
    // The component adds its own options after this callback.
    queueMicrotask(() => options.set(name, opts))
  })
  return program.run(program.config.run)
})
await runtime.waitForRPCs()
const graph = resources.map((resource) => {
  const { protect, retainOnDelete, parent, import: imported } = options.get(resource['name']) ?? {}
  const protection = { protect: protect === true, retainOnDelete: retainOnDelete === true, import: imported }
  return { ...resource, parent: parent?.__name, ...protection }
})
process.stdout.write(JSON.stringify({ app, resources: graph, outputs }))
