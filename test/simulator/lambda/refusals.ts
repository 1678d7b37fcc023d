import { AwsFault } from '@platform/local/emulators/http/error'

export const invalidValue = (message: string) => new AwsFault('InvalidParameterValueException', message)

export const notFound = (arn: string) => new AwsFault('ResourceNotFoundException', `Function not found: ${arn}`, 404)

export const conflict = (message: string) => new AwsFault('ResourceConflictException', message, 409)

export const staleRevision = () =>
  new AwsFault('PreconditionFailedException', 'The RevisionId is not the latest one. Read it again.', 412)

export const throttled = () => new AwsFault('TooManyRequestsException', 'Rate Exceeded.', 429)

export const requestTooLarge = (maximumBytes: number) =>
  new AwsFault('RequestTooLargeException', `The request must be smaller than ${maximumBytes} bytes.`, 413)

export const notJson = () => new AwsFault('InvalidRequestContentException', 'The payload is not JSON.')
