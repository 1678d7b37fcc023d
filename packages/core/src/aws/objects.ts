import { PutObjectCommand, S3Client, S3ServiceException } from '@aws-sdk/client-s3'
import { awsTimeouts } from './sdk.ts'

const client = new S3Client({ requestHandler: awsTimeouts })

/** Does nothing if the object exists. */
export async function putObjectOnce(
  object: { Bucket: string | undefined; Key: string },
  content: string,
): Promise<void> {
  try {
    await client.send(
      new PutObjectCommand({ ...object, Body: content, ContentType: 'application/jose', IfNoneMatch: '*' }),
    )
  } catch (error) {
    if (!(error instanceof S3ServiceException) || error.name !== 'PreconditionFailed') throw error
  }
}
