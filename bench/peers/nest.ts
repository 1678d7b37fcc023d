// oxlint-disable-next-line import/no-unassigned-import -- decorators need what it adds to Reflect
import 'reflect-metadata'
import {
  BadRequestException,
  Body,
  type CanActivate,
  Controller,
  createParamDecorator,
  type ExecutionContext,
  Get,
  HttpCode,
  Inject,
  Injectable,
  Ip,
  Module,
  NotFoundException,
  Param,
  type PipeTransform,
  Post,
  UnauthorizedException,
} from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import serverless from 'serverless-http'
import type * as z from 'zod'
import { readCluster } from './domain/cluster.ts'
import { Submission, submitJob } from './domain/job.ts'
import { type Claims, claimsOf } from './domain/token.ts'

/** Both operations as users of NestJS write them: a module, controllers, services, a guard, and a pipe that asks zod. */

@Injectable()
class TokenGuard implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest()
    request.claims = await claimsOf(request.headers.authorization)
    if (request.claims === undefined) throw new UnauthorizedException()
    return true
  }
}

const CallerClaims = createParamDecorator<undefined, Claims>(
  (_, context: ExecutionContext) => context.switchToHttp().getRequest().claims,
)

class ZodPipe<Output> implements PipeTransform<unknown, Output> {
  readonly #schema: z.ZodType<Output>
  constructor(schema: z.ZodType<Output>) {
    this.#schema = schema
  }
  transform(value: unknown): Output {
    const { success, data } = this.#schema.safeParse(value)
    if (!success) throw new BadRequestException()
    return data
  }
}

@Injectable()
class ClustersService {
  read(organisationId: string, id: string) {
    return readCluster(organisationId, id)
  }
}

@Injectable()
class JobsService {
  submit(claims: Claims, address: string, submission: Submission) {
    return submitJob(claims, address, submission)
  }
}

@Controller('api/v1/clusters')
class ClustersController {
  readonly #clusters: ClustersService
  constructor(@Inject(ClustersService) clusters: ClustersService) {
    this.#clusters = clusters
  }
  @Get(':id')
  async read(@CallerClaims() { org }: Claims, @Param('id') id: string) {
    const cluster = await this.#clusters.read(org, id)
    if (cluster === undefined) throw new NotFoundException()
    return cluster
  }
}

@Controller('api/v1/jobs')
class JobsController {
  readonly #jobs: JobsService
  constructor(@Inject(JobsService) jobs: JobsService) {
    this.#jobs = jobs
  }
  @Post()
  @HttpCode(202)
  async submit(@CallerClaims() claims: Claims, @Ip() address: string, @Body(new ZodPipe(Submission)) body: Submission) {
    const job = await this.#jobs.submit(claims, address, body)
    if (job === undefined) throw new NotFoundException()
    return job
  }
}

@Module({
  controllers: [ClustersController, JobsController],
  providers: [ClustersService, JobsService, { provide: APP_GUARD, useClass: TokenGuard }],
})
// oxlint-disable-next-line typescript/no-extraneous-class -- all that a module says, its decorator says
class AppModule {}

const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: false })
await app.init()

export const handler = serverless(app.getHttpAdapter().getInstance())
