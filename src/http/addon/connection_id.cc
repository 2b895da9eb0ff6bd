// The identity of a uWebSockets.js connection: the pointer that a response object carries in its
// first internal field, as a number. The pointer is never followed, so whatever an object carries
// there, no memory is read through it. No state: any number of threads may load this.

#include <node.h>

#include <cstdint>

namespace {

// A value of JavaScript in a field has this bit set. The garbage collector moves such values: they
// identify nothing.
constexpr std::uintptr_t kHeapObjectTag = 1;

// connectionId(response): number, the same for all responses of one open connection; 0 for what has
// no identity.
void connectionId(const v8::FunctionCallbackInfo<v8::Value>& info) {
  double id = 0;
  if (info.Length() > 0 && info[0]->IsObject()) {
    const v8::Local<v8::Object> object = info[0].As<v8::Object>();
    if (object->InternalFieldCount() > 0) {
      const auto pointer =
          reinterpret_cast<std::uintptr_t>(object->GetAlignedPointerFromInternalField(0));
      // Exact: user space has at most 2^53 addresses on the platforms that Node has.
      if ((pointer & kHeapObjectTag) == 0) id = static_cast<double>(pointer);
    }
  }
  info.GetReturnValue().Set(id);
}

}  // namespace

NODE_MODULE_INIT(/* exports, module, context */) {
  (void)module;
  v8::Isolate* isolate = context->GetIsolate();
  const v8::Local<v8::String> name = v8::String::NewFromUtf8Literal(isolate, "connectionId");
  const v8::Local<v8::Function> function =
      v8::Function::New(context, connectionId).ToLocalChecked();
  exports.As<v8::Object>()->Set(context, name, function).Check();
}
