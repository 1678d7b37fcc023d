import { TextField } from '../../ui/field.tsx'

export const AddressField = ({ url }: { url?: string }) => (
  <TextField
    name="url"
    label="Address"
    type="url"
    defaultValue={url}
    placeholder="https://hooks.example.com/platform"
    hint="Private addresses are rejected unless the operator allows them."
    autoComplete="off"
    maxLength={2000}
    required
    isMono
  />
)
