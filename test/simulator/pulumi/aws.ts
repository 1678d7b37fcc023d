import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { localAccountId } from '@platform/local/emulators/http/environment'
import { listenAt } from '@platform/local/listening'

/** Requests of SST itself around a deployment: its identity, parameters, and its state in a bucket. */

const parameters = new Map<string, string>([
  [
    '/sst/bootstrap',
    JSON.stringify({
      version: 5,
      asset: 'simulator-assets',
      state: 'simulator-state',
      assetEcrRegistryId: localAccountId,
      assetEcrUrl: `${localAccountId}.dkr.ecr.us-east-1.amazonaws.com/simulator`,
    }),
  ],
])
const objects = new Map<string, Buffer>()

export const expiredAccessKey = 'EXPIRED'

export async function startAws(onRequest: (request: string) => void): Promise<string> {
  const server = createServer((request, response) => {
    void answer(request, response, onRequest)
  })
  const { port } = await listenAt(server, '127.0.0.1', 0)
  return `http://127.0.0.1:${port}`
}

async function answer(request: IncomingMessage, response: ServerResponse, onRequest: (request: string) => void) {
  const body = await buffer(request)
  const target = request.headers['x-amz-target']
  const [path = ''] = (request.url ?? '').split('?')
  const isIdentityRequest = String(request.headers['content-type']).startsWith('application/x-www-form-urlencoded')
  onRequest(
    typeof target === 'string'
      ? target
      : isIdentityRequest
        ? body.toString().split('&')[0]!
        : `${request.method} ${path}`,
  )
  if (isIdentityRequest) answerIdentity(String(request.headers.authorization), response)
  else if (typeof target === 'string')
    answerParameter(target.split('.')[1] ?? '', JSON.parse(body.toString()), response)
  else answerObject(request, decodeURIComponent(path), body, response)
}

function answerIdentity(authorization: string, response: ServerResponse): void {
  const [, key = ''] = /Credential=([^/]+)\//.exec(authorization) ?? []
  response.setHeader('content-type', 'text/xml')
  if (key === expiredAccessKey) {
    const reason = '<Code>ExpiredToken</Code><Message>The security token included in the request is expired</Message>'
    response.writeHead(403).end(`<ErrorResponse><Error><Type>Sender</Type>${reason}</Error></ErrorResponse>`)
    return
  }
  const identity = `<Arn>arn:aws:iam::${localAccountId}:user/deployer</Arn><Account>${localAccountId}</Account>`
  response.end(
    `<GetCallerIdentityResponse><GetCallerIdentityResult>${identity}</GetCallerIdentityResult></GetCallerIdentityResponse>`,
  )
}

function answerParameter(action: string, { Name, Value }: Record<string, string>, response: ServerResponse): void {
  response.setHeader('content-type', 'application/x-amz-json-1.1')
  const value = parameters.get(Name ?? '')
  if (action === 'PutParameter') parameters.set(Name ?? '', Value ?? '')
  if (action === 'DeleteParameter') parameters.delete(Name ?? '')
  if (action !== 'GetParameter') response.end('{}')
  else if (value === undefined) response.writeHead(400).end(JSON.stringify({ __type: 'ParameterNotFound' }))
  else response.end(JSON.stringify({ Parameter: { Name, Value: value } }))
}

function answerObject(
  { method, url = '', headers }: IncomingMessage,
  key: string,
  body: Buffer,
  response: ServerResponse,
): void {
  response.setHeader('content-type', 'application/xml')
  const content = objects.get(key)
  if (method === 'PUT') {
    objects.set(key, String(headers['content-encoding']).includes('aws-chunked') ? withoutChunks(body) : body)
    response.setHeader('etag', '"any"').end()
  } else if (method === 'DELETE') {
    objects.delete(key)
    response.writeHead(204).end()
  } else if (url.includes('list-type=2')) {
    response.end('<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>')
  } else if (content === undefined) response.writeHead(404).end('<Error><Code>NoSuchKey</Code></Error>')
  else response.end(content)
}

/** Decodes a body that is sent in signed chunks. */
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
