import { AwsServiceError } from '../http/error.ts'

export const notFoundError = (message = "Secrets Manager can't find the specified secret.") =>
  new AwsServiceError('ResourceNotFoundException', message)

export const invalidParameterError = (message: string) => new AwsServiceError('InvalidParameterException', message)

export const invalidRequestError = (message: string) => new AwsServiceError('InvalidRequestException', message)

export const resourceExistsError = (message: string) => new AwsServiceError('ResourceExistsException', message)
