import { AwsServiceError } from '../http/error.ts'

export const notFound = (message = "Secrets Manager can't find the specified secret.") =>
  new AwsServiceError('ResourceNotFoundException', message)

export const invalidParameter = (message: string) => new AwsServiceError('InvalidParameterException', message)

export const invalidRequest = (message: string) => new AwsServiceError('InvalidRequestException', message)

export const resourceExists = (message: string) => new AwsServiceError('ResourceExistsException', message)
