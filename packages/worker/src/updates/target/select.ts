import { config } from '@platform/core/config'
import { type UpdateTarget } from './port.ts'

/** What the platform's functions run on here (`PLAT_UPDATE_TARGET`), a new one each time. Only the one that is used is loaded. */
export const updateTarget = (): Promise<UpdateTarget> =>
  config.PLAT_UPDATE_TARGET === 'lambda-alias' ? lambda() : supervisor()

async function lambda(): Promise<UpdateTarget> {
  const { lambdaAlias } = await import('./lambda-alias.ts')
  return lambdaAlias({ prefix: config.PLAT_FUNCTION_PREFIX, alias: config.PLAT_FUNCTION_ALIAS })
}

async function supervisor(): Promise<UpdateTarget> {
  const { localSupervisor } = await import('./local-supervisor.ts')
  return localSupervisor()
}
