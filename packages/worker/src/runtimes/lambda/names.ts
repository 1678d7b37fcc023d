import { createHash } from 'node:crypto'
import { type Deployment } from '@platform/core/modules/record'
import { environmentNames } from '@platform/modules/protocol'
import { type DeploymentSpec } from '../port.ts'

/**
 * What of a deployment stands in Lambda, so that nothing else has to keep it: a module is a function, each of its deployments
 * a version. All of it is in the version's environment, and in its description for people.
 */

/** The revision of a function that is not published. */
export const latestVersion = '$LATEST'

const maximumNameLength = 64

/** The name of a module's function. One that is too long for Lambda ends in what tells it from others. */
export function functionNameOf(prefix: string, moduleId: string): string {
  const name = `${prefix}-${moduleId}`
  if (name.length <= maximumNameLength) return name
  const mark = createHash('sha256').update(moduleId).digest('hex').slice(0, 8)
  return `${name.slice(0, maximumNameLength - mark.length - 1)}-${mark}`
}

/** What the platform itself reads again; modules have no use for it. */
const ownNames = { version: 'PLATFORM_RELEASE_VERSION', digest: 'PLATFORM_RELEASE_DIGEST' } as const

/** The environment of a deployment. Whoever may read functions can read the token in it. */
export const environmentOf = (assignment: DeploymentSpec, token: string): Record<string, string> => ({
  [environmentNames.deployment]: assignment.id,
  [environmentNames.module]: assignment.moduleId,
  [environmentNames.organisation]: assignment.organisationId,
  [environmentNames.token]: token,
  [environmentNames.startsItself]: assignment.startsItself ? '1' : '0',
  [ownNames.version]: assignment.version,
  [ownNames.digest]: assignment.digest,
})

export const descriptionOf = (deploymentId: string): string => `deployment ${deploymentId}`

/** What of a function's configuration says whose it is. */
interface Configuration {
  FunctionName?: string | undefined
  Version?: string | undefined
  Environment?: { Variables?: Record<string, string> | undefined } | undefined
}

/** The deployment that a configuration is of, published or about to be; undefined where it is of none. */
export const deploymentIdIn = ({ Environment }: Configuration): string | undefined =>
  Environment?.Variables?.[environmentNames.deployment]

/** The deployment that a function or a version is; undefined where it is none. */
export function deploymentIn(configuration: Configuration): Deployment | undefined {
  const { FunctionName: name, Version: functionVersion = latestVersion, Environment } = configuration
  const { [environmentNames.deployment]: id, [environmentNames.module]: moduleId } = Environment?.Variables ?? {}
  const { [ownNames.version]: version, [ownNames.digest]: digest } = Environment?.Variables ?? {}
  if (name === undefined || id === undefined || moduleId === undefined) return undefined
  if (version === undefined || digest === undefined) return undefined
  return deploymentOf(name, functionVersion, { id, moduleId, version, digest })
}

const isolation = 'A function of AWS Lambda: virtual machines of its own, and no rights but those of its role.'

/** The deployment that a version of a function is. */
export const deploymentOf = (
  functionName: string,
  functionVersion: string,
  { id, moduleId, version, digest }: Pick<DeploymentSpec, 'id' | 'moduleId' | 'version' | 'digest'>,
): Deployment => ({
  runtime: 'lambda',
  isolation,
  id,
  moduleId,
  version,
  digest,
  handle: `${functionName}:${functionVersion}`,
})

/** The function and the version that a handle names. */
export function partsOf({ handle }: Deployment): { functionName: string; functionVersion: string } {
  const [functionName = '', functionVersion = latestVersion] = handle.split(':')
  return { functionName, functionVersion }
}
