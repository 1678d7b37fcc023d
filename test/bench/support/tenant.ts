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

/** The administrator of the organisation that the setup creates. */
export interface Tenant {
  organisationId: string
  accessToken: string
}

let tenant: Promise<Tenant> | undefined

/** Completes the setup of the platform once per process and signs the administrator in. */
export const setUp = (): Promise<Tenant> => (tenant ??= signInAfterSetup())

async function signInAfterSetup(): Promise<Tenant> {
  // This module completes the setup when it is imported.
  await import('../../functions/users.ts')
  const { caller, accessToken } = await signInUser(administrator.username)
  return { organisationId: caller.organisationId, accessToken }
}

/** An access token of a new administrator of an organisation. */
export const newToken = async (organisationId: string): Promise<string> =>
  issueAccessToken({ ...(await newCaller(organisationId)), roles: ['OrgAdmin'] })

/** Imports a handler by the name of its function. */
export const handlerFor = async (functionName: string): Promise<any> =>
  (await import(`../../../functions/${functionName}.ts`)).handler

/** Invokes a function in this process. */
export const sendJson: SendJson = async (functionName, request) =>
  expectSuccess(await send(await handlerFor(functionName), request)).json

/** A new cluster with an enrolled relay. */
export const newRelay = (accessToken: string): Promise<BenchRelay> => enrollRelay(sendJson, accessToken)

/** Registers clusters without relays. */
export async function newClusters(accessToken: string, count: number): Promise<string[]> {
  const clusterIds: string[] = []
  // One at a time: each registration changes the head of the same list.
  while (clusterIds.length < count) clusterIds.push((await sendJson('clusters', registerRequest(accessToken))).id)
  return clusterIds
}
