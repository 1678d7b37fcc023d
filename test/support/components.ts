import { join } from 'node:path'
import { stop } from 'esbuild'
import type { TestProject } from 'vitest/node'
import { installComponents } from '../simulator/graph/components.ts'
import { type Graph } from '../simulator/graph/graph.ts'
import { writeFunctions } from '../../scripts/deploy/build.ts'
import { deployedFunctions } from './build-cache.ts'
import { graphOf } from './graphs.ts'
import { temporaryFolder } from './temporary-folder.ts'

declare module 'vitest' {
  interface ProvidedContext {
    dev: Graph
    production: Graph
    functionsDir: string
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await installComponents()
  await using parts = new AsyncDisposableStack()
  const functionsDir = join(parts.use(await temporaryFolder()).path, 'functions')
  const builtFunctions = deployedFunctions()
  const [dev, production, functions] = await Promise.all([graphOf('dev'), graphOf('production'), builtFunctions])
  // Otherwise the esbuild service keeps its memory until this process exits.
  await stop()
  await writeFunctions(functions, functionsDir)
  project.provide('dev', dev)
  project.provide('production', production)
  project.provide('functionsDir', functionsDir)
  const keptParts = parts.move()
  return () => keptParts.disposeAsync()
}
