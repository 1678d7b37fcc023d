import * as z from 'zod'

const maximumEnvironmentBytes = 4096
const reserved = /^(?:_HANDLER$|_X_AMZN_TRACE_ID$|AWS_(?!XRAY_)|LAMBDA_(?:TASK_ROOT|RUNTIME_DIR)$)/

const Variables = z
  .record(z.string().regex(/^[a-zA-Z]\w+$/), z.string())
  .refine((variables) => !Object.keys(variables).some((name) => reserved.test(name)), 'A name is reserved.')
  .refine(
    (variables) => Buffer.byteLength(JSON.stringify(variables)) <= maximumEnvironmentBytes,
    `More than ${maximumEnvironmentBytes} bytes.`,
  )

const ImageConfig = z.object({
  EntryPoint: z.array(z.string()).optional(),
  Command: z.array(z.string()).optional(),
  WorkingDirectory: z.string().optional(),
})

export const ZipFile = z.string().transform((text) => Buffer.from(text, 'base64'))

export const Architectures = z.tuple([z.enum(['x86_64', 'arm64'])])

export const settingMembers = {
  Description: z.string().max(256).optional(),
  Role: z
    .string()
    .regex(/^arn:aws[a-z-]*:iam::\d{12}:role\/?[\w+=,.@/-]+$/)
    .optional(),
  Timeout: z.int().min(1).max(900).optional(),
  MemorySize: z.int().min(128).max(10_240).optional(),
  Environment: z.object({ Variables: Variables.default({}) }).optional(),
  ImageConfig: ImageConfig.optional(),
  LoggingConfig: z.object({ LogGroup: z.string().regex(/^[\w./#-]{1,512}$/) }).optional(),
  Runtime: z.string().optional(),
  Handler: z.string().max(128).optional(),
}

const SettingMembers = z.object(settingMembers)

export interface Settings extends z.infer<typeof SettingMembers> {
  Description: string
  Role: string
  Timeout: number
  MemorySize: number
  architecture: 'x86_64' | 'arm64'
}

/** Lambda's defaults. */
export const defaultSettings = { Description: '', Timeout: 3, MemorySize: 128, architecture: 'x86_64' } as const

export function changedSettings(settings: Settings, request: z.infer<typeof SettingMembers>): Settings {
  const said = Object.entries(SettingMembers.parse(request)).filter(([, value]) => value !== undefined)
  return Object.assign({}, settings, Object.fromEntries(said))
}
