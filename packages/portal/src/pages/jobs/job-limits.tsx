import { TextField } from '../../ui/field.tsx'

const number = { type: 'number', inputMode: 'numeric', min: 1, step: 1 } as const

export const JobLimits = ({ timeoutSeconds }: { timeoutSeconds: number | undefined }) => (
  <>
    <TextField
      {...number}
      name="timeoutMinutes"
      label="Execution timeout (minutes)"
      max={2880}
      defaultValue={timeoutSeconds === undefined ? '' : String(Math.ceil(timeoutSeconds / 60))}
      placeholder="60"
      isOptional
    />
    <TextField
      {...number}
      name="deliverWithinMinutes"
      label="Delivery timeout (minutes)"
      max={43_200}
      placeholder="60"
      hint="The job fails if its relay does not pick it up in time."
      isOptional
    />
  </>
)

export const BatchLimits = () => (
  <>
    <TextField
      {...number}
      name="maxConcurrency"
      label="Maximum concurrent jobs"
      max={500}
      placeholder="all"
      isOptional
    />
    <TextField
      {...number}
      name="maxErrors"
      min={0}
      label="Stop after this many failures"
      max={500}
      placeholder="never"
      hint="Queued jobs are then cancelled."
      isOptional
    />
  </>
)
