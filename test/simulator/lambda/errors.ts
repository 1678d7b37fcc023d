import { AwsServiceError } from '@platform/local/emulators/http/error'

export const invalidValue = (message: string) => new AwsServiceError('InvalidParameterValueException', message)

export const notFound = (arn: string) =>
  new AwsServiceError('ResourceNotFoundException', `Function not found: ${arn}`, 404)

export const conflict = (message: string) => new AwsServiceError('ResourceConflictException', message, 409)

export const staleRevision = () =>
  new AwsServiceError('PreconditionFailedException', 'The RevisionId is not the latest one. Read it again.', 412)

export const requestTooLarge = (maxBytes: number) =>
  new AwsServiceError('RequestTooLargeException', `The request must be smaller than ${maxBytes} bytes.`, 413)
