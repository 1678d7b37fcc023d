import { GetAccountSettingsCommand, GetFunctionConcurrencyCommand, LambdaClient } from '@aws-sdk/client-lambda'
import { CliError, messageOf } from '@platform/cli/exit'
import * as z from 'zod'
import { functionsWithReservation } from '../../infra/concurrency.ts'
import { signedPost } from './signed-post.ts'

/** The load that the limits of the AWS account allow. */
export interface Capacity {
  /** Concurrent executions that are free for this stage. */
  concurrency: number
  /** Requests per second that the gateways of the region and these functions can serve. */
  requestsPerSecond: number
  /** Messages about limits that are too low, or a gateway limit that is unknown, with the remedy. */
  warnings: string[]
}

const minConcurrency = 100
const maxRequestsPerSecond = 5000
/** Requests that one execution environment serves per second if a response takes 50 milliseconds. */
const requestsPerSecondPerEnvironment = 20

const howToRaise = (service: string, quota: string, value: number, region: string): string =>
  `Raise it: aws service-quotas request-service-quota-increase --region ${region} --service-code ${service} --quota-code ${quota} --desired-value ${value}`

/** Throws `CliError` if Lambda's limits cannot be read, because a guess could remove the stage's reservations. */
export async function findCapacity(region: string, stage: string): Promise<Capacity> {
  const warnings: string[] = []
  const client = new LambdaClient({ region, maxAttempts: 2 })
  try {
    const [{ totalConcurrency, freeConcurrency }, gatewayLimit] = await Promise.all([
      concurrencyOf(client, stage),
      findGatewayLimit(region, warnings),
    ])
    const requestsPerSecond = Math.min(
      maxRequestsPerSecond,
      requestsPerSecondPerEnvironment * totalConcurrency,
      gatewayLimit ?? maxRequestsPerSecond,
    )
    if (totalConcurrency < minConcurrency) {
      const problem = `Lambda may run ${totalConcurrency} functions at a time in ${region}; the platform needs ${minConcurrency} or more, and starts slowly with fewer.`
      warnings.push(`${problem}\n${howToRaise('lambda', 'L-B99A9384', 1000, region)}`)
    }
    if (gatewayLimit !== undefined && gatewayLimit < maxRequestsPerSecond) {
      const problem = `API Gateway accepts ${gatewayLimit} requests per second in ${region}; the stage is set to that instead of ${maxRequestsPerSecond}.`
      warnings.push(`${problem}\n${howToRaise('apigateway', 'L-8A5B8E43', maxRequestsPerSecond, region)}`)
    }
    return { concurrency: freeConcurrency, requestsPerSecond, warnings }
  } catch (error) {
    throw unreadableError(region, error)
  } finally {
    client.destroy()
  }
}

function unreadableError(region: string, error: unknown): CliError {
  const name = error instanceof Error ? error.name : 'Error'
  const problem = `The concurrency of the account in ${region} cannot be read from Lambda (${name}: ${messageOf(error)}).`
  const remedy =
    name === 'AccessDeniedException'
      ? 'Allow lambda:GetAccountSettings and lambda:GetFunctionConcurrency, and run the command again.'
      : 'Run the command again.'
  const alternative =
    'Or set PLAT_CONCURRENCY and PLAT_THROTTLE_PER_SECOND: docs/deployment.md#capacity-of-the-account.'
  return new CliError('usage', `${problem}\n${remedy} ${alternative}`, error)
}

/** Reservations of an earlier deployment of this stage count as free. */
async function concurrencyOf(
  client: LambdaClient,
  stage: string,
): Promise<{ totalConcurrency: number; freeConcurrency: number }> {
  const [{ AccountLimit }, ...ownReservations] = await Promise.all([
    client.send(new GetAccountSettingsCommand()),
    ...functionsWithReservation.map((name) => reservationOf(client, `platform-${stage}-fn-${name}`)),
  ])
  const { ConcurrentExecutions: totalConcurrency = 0, UnreservedConcurrentExecutions: unreserved = 0 } =
    AccountLimit ?? {}
  return { totalConcurrency, freeConcurrency: ownReservations.reduce((sum, count) => sum + count, unreserved) }
}

async function reservationOf(client: LambdaClient, FunctionName: string): Promise<number> {
  try {
    const { ReservedConcurrentExecutions = 0 } = await client.send(new GetFunctionConcurrencyCommand({ FunctionName }))
    return ReservedConcurrentExecutions
  } catch (error) {
    if (error instanceof Error && error.name === 'ResourceNotFoundException') return 0
    throw error
  }
}

const Quota = z.object({ Quota: z.object({ Value: z.number() }) })

/** Returns undefined, and adds a warning, if the quota cannot be read. */
async function findGatewayLimit(region: string, warnings: string[]): Promise<number | undefined> {
  const headers = {
    'content-type': 'application/x-amz-json-1.1',
    'x-amz-target': 'ServiceQuotasV20190624.GetServiceQuota',
  }
  const body = JSON.stringify({ ServiceCode: 'apigateway', QuotaCode: 'L-8A5B8E43' })
  try {
    const response = await signedPost({ service: 'servicequotas', region, headers, body })
    if (!response.ok) throw new Error(`Service Quotas responded with the status ${response.status}`)
    return Quota.parse(await response.json()).Quota.Value
  } catch (error) {
    const problem = `The quota of API Gateway in ${region} cannot be read (${messageOf(error)}).`
    const limit = `The stage is set to at most ${maxRequestsPerSecond} requests per second.`
    warnings.push(`${problem} ${limit} To check the quota, allow servicequotas:GetServiceQuota.`)
    return undefined
  }
}
