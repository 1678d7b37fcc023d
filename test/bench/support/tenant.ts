import { issueAccessToken } from '@platform/core/signing/access-token'
import { newCaller, signInUser } from '../../support/fixtures.ts'
import { send } from '../../support/request.ts'
import {
  administrator,
  type BenchRelay,
  enrollRelay,
  expectSuccess,
  registerRequest,
  type SendJson,
} from './requests.ts'

export interface Tenant {
  organisationId: string
  accessToken: string
}

let tenant: Promise<Tenant> | undefined

export const setUp = (): Promise<Tenant> => (tenant ??= signInAfterSetup())

async function signInAfterSetup(): Promise<Tenant> {
  // `users.ts` completes the setup when it is imported.
  await import('../../functions/users.ts')
  const { caller, accessToken } = await signInUser(administrator.username)
  return { organisationId: caller.organisationId, accessToken }
}

export const newToken = async (organisationId: string): Promise<string> =>
  issueAccessToken({ ...(await newCaller(organisationId)), roles: ['OrgAdmin'] })

export const handlerFor = async (functionName: string): Promise<any> =>
  (await import(`../../../functions/${functionName}.ts`)).handler

export const sendJson: SendJson = async (functionName, request) =>
  expectSuccess(await send(await handlerFor(functionName), request)).json

export const newRelay = (accessToken: string): Promise<BenchRelay> => enrollRelay(sendJson, accessToken)

export async function newClusters(accessToken: string, count: number): Promise<string[]> {
  const clusterIds: string[] = []
  // One at a time, because each registration changes the head of the same list.
  while (clusterIds.length < count) clusterIds.push((await sendJson('clusters', registerRequest(accessToken))).id)
  return clusterIds
}
