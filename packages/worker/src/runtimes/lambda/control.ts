import { setTimeout as delay } from 'node:timers/promises'
import {
  type FunctionConfiguration,
  GetFunctionCommand,
  type LambdaClient,
  ListVersionsByFunctionCommand,
} from '@aws-sdk/client-lambda'
import { isAws } from '@platform/core/aws/error-name'
import { jitter } from '@platform/core/id'
import { type ImageRoute } from './image.ts'
import { latestVersion } from './names.ts'
import { type TokenOf } from './request.ts'

/** What deploying, removing and listing work with. */
export interface LambdaControl {
  client: LambdaClient
  /** What the names of functions begin with. */
  prefix: string
  /** ARN of the role that modules run as. */
  role: string
  images: ImageRoute
  tokenOf: TokenOf
  memoryMegabytes: number
  /** What modules write their logs into; a group of each function's own where it is empty. */
  logGroup: string
  /** Of one invocation; a module has 30 seconds to stop. */
  timeoutSeconds: number
  /** Between two looks at what is not ready. */
  pollMs: number
  /** How long a change may take before the caller has to try again. */
  patienceMs: number
}

/** A function as it is just now. */
export interface FoundFunction {
  configuration: FunctionConfiguration
  /** By digest. */
  imageUri: string | undefined
}

/** Undefined where there is no such function or version. One call. */
export async function findFunction(
  { client }: LambdaControl,
  FunctionName: string,
  Qualifier: string = latestVersion,
): Promise<FoundFunction | undefined> {
  try {
    const { Configuration = {}, Code } = await client.send(new GetFunctionCommand({ FunctionName, Qualifier }))
    return { configuration: Configuration, imageUri: Code?.ResolvedImageUri ?? Code?.ImageUri }
  } catch (error) {
    if (isAws(error, 'ResourceNotFoundException')) return undefined
    throw error
  }
}

/** A function's versions, and what of it is not published; nothing where there is no such function. */
export interface FoundVersions {
  latest: FunctionConfiguration | undefined
  published: FunctionConfiguration[]
}

/** One call for every 50 versions. */
export async function findVersions({ client }: LambdaControl, FunctionName: string): Promise<FoundVersions> {
  const found: FunctionConfiguration[] = []
  let Marker: string | undefined
  try {
    do {
      const answer = await client.send(new ListVersionsByFunctionCommand({ FunctionName, Marker }))
      found.push(...(answer.Versions ?? []))
      Marker = answer.NextMarker
    } while (Marker !== undefined)
  } catch (error) {
    if (!isAws(error, 'ResourceNotFoundException')) throw error
    return { latest: undefined, published: [] }
  }
  return { latest: found.find(isLatest), published: found.filter((version) => !isLatest(version)) }
}

const isLatest = ({ Version }: FunctionConfiguration): boolean => Version === latestVersion

/** Someone else changes the function, or has just changed it: what is to be done has to be found out anew. */
export const isOvertaken = (error: unknown): boolean =>
  isAws(error, 'ResourceConflictException', 'PreconditionFailedException', 'ResourceNotFoundException')

/** Until the next look. Of two who wait for the same one should be first. */
export const pause = ({ pollMs }: LambdaControl): Promise<void> => delay(pollMs * (0.5 + jitter()))
