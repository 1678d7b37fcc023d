/** Asks the stand-in for DynamoDB, which verifies no signatures, by a way that no meter of this process sees. */
export async function askStore(action: string, body: object): Promise<any> {
  const response = await fetch(process.env['AWS_ENDPOINT_URL_DYNAMODB'] ?? '', {
    method: 'POST',
    headers: {
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-target': `DynamoDB_20120810.${action}`,
      authorization:
        'AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0',
      'x-amz-date': '20260101T000000Z',
    },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`The store does not tell: ${await response.text()}`)
  return response.json()
}
