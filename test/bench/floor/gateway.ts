/** The parts of an API Gateway event that the floor looks at. */
export interface FloorEvent {
  rawPath: string
  headers: Readonly<Record<string, string | undefined>>
  body?: string
  isBase64Encoded: boolean
  requestContext: { http: { sourceIp: string } }
}

export interface FloorAnswer {
  statusCode: number
  headers: Record<string, string>
  body: string
}

export const respond = (statusCode: number, body: object): FloorAnswer => ({
  statusCode,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

export const refuse = (statusCode: number): FloorAnswer => respond(statusCode, { error: 'refused' })
