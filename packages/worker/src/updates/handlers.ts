import { functionNames } from '@platform/core/updates/function-names'
import type { OperationLease } from '@platform/core/operations/lease'
import type { OperationHandler, OperationHandlers } from '@platform/core/operations/run'
import { config } from '@platform/core/config'
import { classifyUpdateError } from './errors.ts'
import { rollBack } from './roll-back.ts'
import { update } from './apply.ts'
import type { UpdateTarget } from './target/port.ts'

/** Opens a target for one attempt. */
export type TargetFactory = () => Promise<UpdateTarget>

export function updateHandlers(
  openTarget: TargetFactory = updateTarget,
  names: readonly string[] = functionNames,
): OperationHandlers {
  // An attempt uses one target until its end, because the target caches the state that it has read.
  const targets = new WeakMap<OperationLease, Promise<UpdateTarget>>()
  const targetOf = (lease: OperationLease): Promise<UpdateTarget> => {
    const target = targets.get(lease) ?? openTarget()
    targets.set(lease, target)
    return target
  }
  const handler: OperationHandler = {
    run: async (lease) => update({ lease, target: await targetOf(lease), names }),
    compensate: async (lease, reason) => rollBack(lease, await targetOf(lease), reason),
    classifyError: classifyUpdateError,
  }
  return { PlatformUpdate: handler, PlatformRollback: handler }
}

/** Opens a new target for each attempt. Imports only the configured target (`PLAT_UPDATE_TARGET`). */
const updateTarget = (): Promise<UpdateTarget> =>
  config.PLAT_UPDATE_TARGET === 'lambda-alias' ? openLambda() : openSupervisor()

async function openLambda(): Promise<UpdateTarget> {
  const { lambdaAlias } = await import('./target/lambda-alias.ts')
  return lambdaAlias({ prefix: config.PLAT_FUNCTION_PREFIX, alias: config.PLAT_FUNCTION_ALIAS })
}

async function openSupervisor(): Promise<UpdateTarget> {
  const { localSupervisor } = await import('./target/local-supervisor.ts')
  return localSupervisor()
}
