import { createHash } from 'node:crypto'
import type { Deployment } from '@platform/core/modules/deployment'
import { environmentNames } from '@platform/modules/protocol'
import type { DeploymentSpec } from '../port.ts'

/**
 * A module is a Lambda function, and each of its deployments is a version. The version's environment contains the whole
 * state of the deployment, so that the platform need not store it elsewhere. The description of a version is only for
 * display.
 */

/** The unpublished revision of a function. */
export const latestVersion = '$LATEST'

const maxNameLength = 64

/** Returns the name of a module's function. A name that is too long for Lambda is truncated and ends in a hash. */
export function functionNameOf(prefix: string, moduleId: string): string {
  const name = `${prefix}-${moduleId}`
  if (name.length <= maxNameLength) return name
  const hash = createHash('sha256').update(moduleId).digest('hex').slice(0, 8)
  return `${name.slice(0, maxNameLength - hash.length - 1)}-${hash}`
}

/** Variables that only the platform reads. */
const releaseNames = { version: 'PLATFORM_RELEASE_VERSION', digest: 'PLATFORM_RELEASE_DIGEST' } as const

/** Returns the environment of a deployment. Any principal that may read functions can read the token in it. */
export const environmentOf = (spec: DeploymentSpec, token: string): Record<string, string> => ({
  [environmentNames.deployment]: spec.id,
  [environmentNames.module]: spec.moduleId,
  [environmentNames.organisation]: spec.organisationId,
  [environmentNames.token]: token,
  [environmentNames.startsItself]: spec.startsItself ? '1' : '0',
  [releaseNames.version]: spec.version,
  [releaseNames.digest]: spec.digest,
})

export const descriptionOf = (deploymentId: string): string => `deployment ${deploymentId}`

interface Configuration {
  FunctionName?: string | undefined
  Version?: string | undefined
  Environment?: { Variables?: Record<string, string> | undefined } | undefined
}

export const deploymentIdIn = ({ Environment }: Configuration): string | undefined =>
  Environment?.Variables?.[environmentNames.deployment]

export function deploymentIn(configuration: Configuration): Deployment | undefined {
  const { FunctionName: name, Version: functionVersion = latestVersion, Environment } = configuration
  const { [environmentNames.deployment]: id, [environmentNames.module]: moduleId } = Environment?.Variables ?? {}
  const { [releaseNames.version]: version, [releaseNames.digest]: digest } = Environment?.Variables ?? {}
  if (name === undefined || id === undefined || moduleId === undefined) return undefined
  if (version === undefined || digest === undefined) return undefined
  return deploymentOf(name, functionVersion, { id, moduleId, version, digest })
}

const isolation = 'A function of AWS Lambda: isolated virtual machines, with the permissions of its role.'

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

export function parseHandle({ handle }: Deployment): { functionName: string; functionVersion: string } {
  const [functionName = '', functionVersion = latestVersion] = handle.split(':')
  return { functionName, functionVersion }
}
