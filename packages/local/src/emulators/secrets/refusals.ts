import { AwsFault } from '../http/error.ts'

export const notFound = (message = "Secrets Manager can't find the specified secret.") =>
  new AwsFault('ResourceNotFoundException', message)

export const invalidParameter = (message: string) => new AwsFault('InvalidParameterException', message)

export const invalidRequest = (message: string) => new AwsFault('InvalidRequestException', message)

export const resourceExists = (message: string) => new AwsFault('ResourceExistsException', message)
