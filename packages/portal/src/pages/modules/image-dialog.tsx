import { api, unwrap, type Schemas } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { refreshModules } from '../../api/query.ts'

interface ImageDialogProps {
  isOpen: boolean
  onClose: () => void
  onBegun: (accepted: Schemas['InstallAccepted']) => void
}

/** Installs a module by its image. Errors of the image or its manifest are shown in the form. */
export function ImageDialog({ isOpen, onClose, onBegun }: ImageDialogProps) {
  const install = async ({ imageRef = '', manifestUrl = '' }: FormValues) => {
    const wish = manifestUrl.trim() === '' ? {} : { manifestUrl: manifestUrl.trim() }
    const accepted = await unwrap(api.POST('/api/modules/install', { body: { imageRef: imageRef.trim(), ...wish } }))
    void refreshModules()
    onClose()
    onBegun(accepted)
  }
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title="Install by image"
      description="For modules that are not in the catalog. Upgrades the module if it is installed."
    >
      <Form submitLabel="Install" actions={<Button onClick={onClose}>Cancel</Button>} onSubmit={install}>
        <TextField
          name="imageRef"
          label="Image"
          isMono
          required
          autoComplete="off"
          placeholder="registry.example.com/modules/hello:1.0.0"
          hint="Including registry and tag or digest."
        />
        <TextField
          name="manifestUrl"
          label="Manifest URL"
          isOptional
          isMono
          type="url"
          autoComplete="off"
          placeholder="https://example.com/module.json"
          hint="Defaults to the module.json in the image."
        />
      </Form>
    </Dialog>
  )
}
