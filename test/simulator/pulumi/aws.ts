import { localAccountId } from '@platform/local/emulators/http/environment'
import { type ReceivedRequest, type ServerReply, startServer } from '../../support/http-server.ts'
import { bootstrapParameters } from '../graph/answers.ts'

const parameters = new Map([['/sst/bootstrap', JSON.stringify(bootstrapParameters)]])
const objects = new Map<string, Buffer>()

export const expiredAccessKey = 'EXPIRED'
/** The access key of a deployer who may not read the limits of Lambda. */
export const limitedAccessKey = 'LIMITED'

/**
 * Serves the AWS requests of SST itself: account limits, identity, parameters, and state in a bucket. Returns the URL.
 */
export async function startAws(onRequest: (request: string) => void): Promise<string> {
  const { url } = await startServer((request) => {
    const { method, headers, body } = request
    const target = headers['x-amz-target']
    if (request.url.pathname.endsWith('/account-settings')) return accountSettingsReply(String(headers.authorization))
    if (request.url.pathname.endsWith('/concurrency'))
      return json({}, 404, { 'x-amzn-errortype': 'ResourceNotFoundException' })
    if (target === 'ServiceQuotasV20190624.GetServiceQuota') return json({ Quota: { Value: 2500 } })
    if (typeof target === 'string') {
      onRequest(target)
      return parameterReply(target.split('.')[1] ?? '', JSON.parse(body.toString()))
    }
    if (headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true) {
      onRequest(body.toString().split('&')[0] ?? '')
      return identityReply(String(headers.authorization))
    }
    onRequest(`${method} ${request.url.pathname}`)
    return objectReply(request)
  })
  return url
}

/** The low concurrency limits of a new account. */
const accountSettings = { AccountLimit: { ConcurrentExecutions: 10, UnreservedConcurrentExecutions: 10 } }

const json = (body: object, status = 200, headers: Record<string, string> = {}): ServerReply => ({
  status,
  headers: { ...headers, 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

const accessKeyIn = (authorization: string): string | undefined => /Credential=([^/]+)\//.exec(authorization)?.[1]

const accountSettingsReply = (authorization: string): ServerReply =>
  accessKeyIn(authorization) === limitedAccessKey
    ? json({ Message: 'Not authorized: lambda:GetAccountSettings' }, 403, {
        'x-amzn-errortype': 'AccessDeniedException',
      })
    : json(accountSettings)

function identityReply(authorization: string): ServerReply {
  const headers = { 'content-type': 'text/xml' }
  if (accessKeyIn(authorization) === expiredAccessKey) {
    const reason = '<Code>ExpiredToken</Code><Message>The security token included in the request is expired</Message>'
    const body = `<ErrorResponse><Error><Type>Sender</Type>${reason}</Error></ErrorResponse>`
    return { status: 403, headers, body }
  }
  const identity = `<Arn>arn:aws:iam::${localAccountId}:user/deployer</Arn><Account>${localAccountId}</Account>`
  const result = `<GetCallerIdentityResult>${identity}</GetCallerIdentityResult>`
  return { status: 200, headers, body: `<GetCallerIdentityResponse>${result}</GetCallerIdentityResponse>` }
}

function parameterReply(action: string, { Name = '', Value = '' }: Record<string, string>): ServerReply {
  const headers = { 'content-type': 'application/x-amz-json-1.1' }
  const value = parameters.get(Name)
  if (action === 'PutParameter') parameters.set(Name, Value)
  if (action === 'DeleteParameter') parameters.delete(Name)
  if (action !== 'GetParameter') return { status: 200, headers, body: '{}' }
  if (value === undefined) return { status: 400, headers, body: JSON.stringify({ __type: 'ParameterNotFound' }) }
  return { status: 200, headers, body: JSON.stringify({ Parameter: { Name, Value: value } }) }
}

function objectReply({ method, url, headers: sent, body }: ReceivedRequest): ServerReply {
  const headers = { 'content-type': 'application/xml' }
  const key = decodeURIComponent(url.pathname)
  const content = objects.get(key)
  if (method === 'PUT') {
    objects.set(key, String(sent['content-encoding']).includes('aws-chunked') ? withoutChunks(body) : body)
    return { status: 200, headers: { ...headers, etag: '"any"' } }
  }
  if (method === 'DELETE') {
    objects.delete(key)
    return { status: 204, headers }
  }
  if (url.searchParams.get('list-type') === '2') {
    return { status: 200, headers, body: '<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>' }
  }
  if (content === undefined) return { status: 404, headers, body: '<Error><Code>NoSuchKey</Code></Error>' }
  return { status: 200, headers, body: content }
}

function withoutChunks(body: Buffer): Buffer {
  const chunks: Buffer[] = []
  for (let offset = 0; ;) {
    const end = body.indexOf('\r\n', offset)
    const size = Number.parseInt(body.subarray(offset, end).toString(), 16)
    if (!(size > 0)) return Buffer.concat(chunks)
    chunks.push(body.subarray(end + 2, end + 2 + size))
    offset = end + 2 + size + 2
  }
}
