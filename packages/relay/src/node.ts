import type { Executor } from './executor/executor.ts'
import { localExecutor } from './executor/local.ts'
import { sshExecutor } from './executor/ssh.ts'
import type { ScriptUser } from './executor/user.ts'
import type { EnrolledNode } from './identity.ts'

/** A node with the executor that runs its scripts. */
export type RelayNode = { id: string; name: string; executor: Executor }

/** Creates the executor of each enrolled node. */
export function connectNodes(nodes: EnrolledNode[], workFolder: string, user: ScriptUser): RelayNode[] {
  return nodes.map(({ id, config }) => {
    const executor = config.executor === 'ssh' ? sshExecutor(config) : localExecutor(workFolder, user)
    return { id, name: config.name, executor }
  })
}
