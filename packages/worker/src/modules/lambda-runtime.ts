import { config } from '@platform/core/config'
import { registryClientFor } from '@platform/core/modules/registries'
import { currentPlatform } from '@platform/oci/image'
import { parseReference } from '@platform/oci/reference'
import { ecrTarget } from '../runtimes/lambda/ecr.ts'
import { ociTarget } from '../runtimes/lambda/image.ts'
import { lambdaRuntime } from '../runtimes/lambda/runtime.ts'
import type { ModuleRuntime } from '../runtimes/port.ts'
import { tokenOf } from '../runtimes/token.ts'

/**
 * Opens the runtime that runs modules as Lambda functions. It copies their images to `PLAT_MODULE_REPOSITORY`, which is
 * in ECR unless `PLAT_MODULE_REGISTRY` is `plain`.
 */
export function openLambdaRuntime(): ModuleRuntime {
  const reference = parseReference(config.PLAT_MODULE_REPOSITORY)
  if (reference === undefined) throw new Error('PLAT_MODULE_REPOSITORY must name a registry and a path in it.')
  const { registry, repository } = reference
  const target =
    config.PLAT_MODULE_REGISTRY === 'ecr'
      ? ecrTarget({}, repository, (credentials) => registryClientFor(registry, { credentials }))
      : ociTarget(registryClientFor(registry), repository)
  const images = { source: registryClientFor, target, platform: currentPlatform() }
  const { PLAT_MODULE_PREFIX: prefix, PLAT_MODULE_ROLE: role, PLAT_MODULE_LOG_GROUP: logGroup } = config
  return lambdaRuntime({ prefix, role, logGroup, images, tokenOf })
}
