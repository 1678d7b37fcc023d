import { join } from 'node:path'
import { inspect } from 'node:util'
import { buildAssets } from '@platform/local/assets'
import { stop } from 'esbuild'
import { writeFunctions } from '../../scripts/deploy/build.ts'
import { root } from '../../scripts/source.ts'
import { installComponents } from '../simulator/graph/components.ts'
import type { Graph } from '../simulator/graph/graph.ts'
import { deployedFunctions } from './build-cache.ts'
import { graphOf } from './graphs.ts'
import { startServer } from './http-server.ts'
import { temporaryFolder } from './temporary-folder.ts'

interface Deployment {
  dev: Graph
  production: Graph
  functionsDir: string
}

const urlVariable = 'PLAT_TEST_DEPLOYMENT'

/** Builds the deployment once for all test files of a run, while tests that do not need it already run. */
export async function setup(): Promise<() => Promise<void>> {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await temporaryFolder())
  // By default, the esbuild service (a Go program) spends a quarter of its CPU time on collecting garbage.
  process.env['GOGC'] ??= '400'
  const assets = buildAssets(join(root, 'dist'))
  const reply = build(assets, join(folder.path, 'functions')).then(
    (deployment) => ({ status: 200, body: JSON.stringify(deployment) }),
    (error: unknown) => ({ status: 500, body: inspect(error) }),
  )
  parts.defer(async () => void (await reply))
  const server = parts.use(await startServer(() => reply))
  process.env[urlVariable] = server.url
  // Platforms that start at the same time would each build the assets.
  await assets
  const keptParts = parts.move()
  return () => keptParts.disposeAsync()
}

async function build(assets: Promise<void>, functionsDir: string): Promise<Deployment> {
  const builtFunctions = assets.then(deployedFunctions)
  const graphs = installComponents().then(() => Promise.all([graphOf('dev'), graphOf('production')]))
  const [functions, [dev, production]] = await Promise.all([builtFunctions, graphs])
  // Otherwise the esbuild service keeps its memory until this process exits.
  await stop()
  await writeFunctions(functions, functionsDir)
  return { dev, production, functionsDir }
}

/** Waits until the deployment is built. */
export async function deployment(): Promise<Deployment> {
  const response = await fetch(process.env[urlVariable] ?? '')
  if (!response.ok) throw new Error(await response.text())
  const body: any = await response.json()
  return body
}
