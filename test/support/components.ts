import type { TestProject } from 'vitest/node'
import { installComponents } from '../../rehearsal/graph/components.ts'
import { type Graph, graphOf } from '../../rehearsal/graph/graph.ts'

declare module 'vitest' {
  interface ProvidedContext {
    dev: Graph
    production: Graph
  }
}

/** Before all tests about the deployment, once: what it is made of is unpacked, and two stages of it are evaluated. */
export async function setup(project: TestProject): Promise<void> {
  await installComponents()
  const [dev, production] = await Promise.all([graphOf('dev'), graphOf('production')])
  project.provide('dev', dev)
  project.provide('production', production)
}
