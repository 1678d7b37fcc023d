import { TextField } from '../../ui/field.tsx'

/** Where events are posted to. */
export const AddressField = ({ url }: { url?: string }) => (
  <TextField
    name="url"
    label="Address"
    type="url"
    defaultValue={url}
    placeholder="https://hooks.example.com/platform"
    hint="A private address is refused unless the operator of the platform has allowed it."
    autoComplete="off"
    maxLength={2000}
    required
    isMono
  />
)
