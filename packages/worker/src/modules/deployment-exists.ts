import { type Deployment } from '@platform/core/modules/record'
import { type ModuleRuntime } from '../runtimes/port.ts'

/**
 * Whether a deployment is there still, well or not. Where it is not, or nobody can tell, what it failed in is not its own
 * failure: somebody has ended it, or whatever runs modules has ended, as it does when the platform stops.
 */
export async function deploymentExists(runtime: ModuleRuntime, { id }: Deployment): Promise<boolean> {
  const statuses = await runtime.list().catch(() => [])
  return statuses.some(({ deployment }) => deployment.id === id)
}
