import { config } from '@platform/core/config'
import { clientOf } from '@platform/core/registries'
import { parseReference } from '@platform/registry/reference'
import { type ModuleRuntime } from '../runtime/port.ts'

let picked: Promise<ModuleRuntime> | undefined

/** What runs modules here (`PLAT_MODULE_RUNTIME`). Only the one that is used is loaded. */
export const moduleRuntime = (): Promise<ModuleRuntime> =>
  (picked ??= config.PLAT_MODULE_RUNTIME === 'lambda' ? lambda() : hosted())

async function hosted(): Promise<ModuleRuntime> {
  const { hostedRuntime } = await import('../runtime/hosted.ts')
  return hostedRuntime()
}

/** Functions on Lambda, whose images are copied to `PLAT_MODULE_REPOSITORY`: Amazon's registry, or another one that it reads. */
async function lambda(): Promise<ModuleRuntime> {
  const [{ lambdaRuntime }, { ecrTarget }, { plainTarget }, { tokenOf }, { thisPlatform }] = await Promise.all([
    import('../runtime/lambda.ts'),
    import('../runtime/lambda-ecr.ts'),
    import('../runtime/lambda-target.ts'),
    import('../runtime/token.ts'),
    import('@platform/registry/image'),
  ])
  const reference = parseReference(config.PLAT_MODULE_REPOSITORY)
  if (reference === undefined) throw new Error('PLAT_MODULE_REPOSITORY must name a registry and a path in it.')
  const { registry, repository } = reference
  const isEcr = /\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com/.test(registry)
  const target = isEcr
    ? ecrTarget({}, repository, (credentials) => clientOf(registry, { credentials }))
    : plainTarget(clientOf(registry), repository)
  const images = { source: clientOf, target, platform: thisPlatform() }
  return lambdaRuntime({ prefix: config.PLAT_MODULE_PREFIX, role: config.PLAT_MODULE_ROLE, images, tokenOf })
}
