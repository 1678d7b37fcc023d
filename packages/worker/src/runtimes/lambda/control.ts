import { setTimeout as delay } from 'node:timers/promises'
import {
  type FunctionConfiguration,
  GetFunctionCommand,
  type LambdaClient,
  ListVersionsByFunctionCommand,
} from '@aws-sdk/client-lambda'
import { isAws } from '@platform/core/aws/sdk'
import { jitter } from '@platform/core/id'
import type { ImageRoute } from './image.ts'
import { latestVersion } from './names.ts'
import type { TokenOf } from './request.ts'

export interface LambdaControl {
  client: LambdaClient
  prefix: string
  /** Interval between two reads while a change is in progress. */
  pollMs: number
  /** Time limit of a change; after it, the caller must retry. */
  timeoutMs: number
}

export interface ModuleLambdaContext extends LambdaControl {
  /** ARN of the execution role of modules. */
  role: string
  images: ImageRoute
  tokenOf: TokenOf
  memoryMegabytes: number
  /** Log group of all modules; if empty, each function has its own. */
  logGroup: string
  /** Timeout of one invocation. It exceeds the 30 seconds that a module has to stop within an invocation. */
  timeoutSeconds: number
}

export interface FunctionState {
  configuration: FunctionConfiguration
  /** Refers to the image by digest. */
  imageUri: string | undefined
}

/** Throws if the function or version does not exist. */
export async function getFunction(
  { client }: LambdaControl,
  FunctionName: string,
  Qualifier: string = latestVersion,
): Promise<FunctionState> {
  const { Configuration = {}, Code } = await client.send(new GetFunctionCommand({ FunctionName, Qualifier }))
  return { configuration: Configuration, imageUri: Code?.ResolvedImageUri ?? Code?.ImageUri }
}

export async function findFunction(
  control: LambdaControl,
  name: string,
  version?: string,
): Promise<FunctionState | undefined> {
  try {
    return await getFunction(control, name, version)
  } catch (error) {
    if (isAws(error, 'ResourceNotFoundException')) return undefined
    throw error
  }
}

/** `latest` is the unpublished revision. `published` is in the order in which Lambda lists the versions. */
export interface FunctionVersions {
  latest: FunctionConfiguration | undefined
  published: FunctionConfiguration[]
}

/** Throws if the function does not exist. */
export async function getVersions({ client }: LambdaControl, FunctionName: string): Promise<FunctionVersions> {
  const versions: FunctionConfiguration[] = []
  let Marker: string | undefined
  do {
    const page = await client.send(new ListVersionsByFunctionCommand({ FunctionName, Marker }))
    versions.push(...(page.Versions ?? []))
    Marker = page.NextMarker
  } while (Marker !== undefined)
  return { latest: versions.find(isLatest), published: versions.filter((version) => !isLatest(version)) }
}

/** Returns the versions of a function, or no versions if it does not exist. */
export async function findVersions(control: LambdaControl, name: string): Promise<FunctionVersions> {
  try {
    return await getVersions(control, name)
  } catch (error) {
    if (!isAws(error, 'ResourceNotFoundException')) throw error
    return { latest: undefined, published: [] }
  }
}

const isLatest = ({ Version }: FunctionConfiguration): boolean => Version === latestVersion

/** Whether another change is in progress or has just ended, so that the function must be read again. */
export const isConflict = (error: unknown): boolean =>
  isAws(error, 'ResourceConflictException', 'PreconditionFailedException', 'ResourceNotFoundException')

/** Waits for about `pollMs`. The jitter prevents collisions of callers that wait for the same change. */
export const pause = ({ pollMs }: LambdaControl): Promise<void> => delay(pollMs * (0.5 + jitter()))
