// What uWebSockets.js does not show of a connection: its identity, a 100 (Continue) for the spellings
// of `Expect` that the library does not know, and how many bytes of its answers the kernel still
// holds. No state: any number of threads may load this.

#include <node.h>

#ifdef __linux__
#include <dlfcn.h>
#include <link.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <string_view>
#endif

#include <cstdint>

namespace {

// A value of JavaScript in a field has this bit set. The garbage collector moves such values: they
// identify nothing.
constexpr std::uintptr_t kHeapObjectTag = 1;

// The connection of a response object; null for an object that has none.
void* socketOf(const v8::FunctionCallbackInfo<v8::Value>& info) {
  if (info.Length() == 0 || !info[0]->IsObject()) return nullptr;
  const v8::Local<v8::Object> object = info[0].As<v8::Object>();
  if (object->InternalFieldCount() == 0) return nullptr;
  void* const pointer = object->GetAlignedPointerFromInternalField(0);
  return (reinterpret_cast<std::uintptr_t>(pointer) & kHeapObjectTag) == 0 ? pointer : nullptr;
}

// connectionId(response): number, the same for all responses of one open connection; 0 for what has
// no identity.
void connectionId(const v8::FunctionCallbackInfo<v8::Value>& info) {
  // Exact: user space has at most 2^53 addresses on the platforms that Node has.
  info.GetReturnValue().Set(
      static_cast<double>(reinterpret_cast<std::uintptr_t>(socketOf(info))));
}

// The functions of uSockets' own interface (libusockets.h) that are used here. The library that has
// them is loaded already, for its own process alone; a build without them has none of this.
struct UsSockets {
  void* (*nativeHandle)(int ssl, void* socket) = nullptr;
  int (*write)(int ssl, void* socket, const char* data, int length, int more) = nullptr;
};

#ifdef __linux__
constexpr std::string_view kAddonEnding = ".node";

int findUsSockets(dl_phdr_info* object, size_t, void* found) {
  const std::string_view name = object->dlpi_name;
  if (name.size() < kAddonEnding.size() ||
      name.substr(name.size() - kAddonEnding.size()) != kAddonEnding)
    return 0;
  void* const library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  auto* const sockets = static_cast<UsSockets*>(found);
  void* const nativeHandle = dlsym(library, "us_socket_get_native_handle");
  void* const write = dlsym(library, "us_socket_write");
  dlclose(library);
  if (nativeHandle == nullptr || write == nullptr) return 0;
  sockets->nativeHandle = reinterpret_cast<decltype(sockets->nativeHandle)>(nativeHandle);
  sockets->write = reinterpret_cast<decltype(sockets->write)>(write);
  return 1;
}

const UsSockets& usSockets() {
  static const UsSockets found = [] {
    UsSockets sockets;
    dl_iterate_phdr(findUsSockets, &sockets);
    return sockets;
  }();
  return found;
}
#else
const UsSockets& usSockets() {
  static const UsSockets none;
  return none;
}
#endif

constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";

// sendContinue(response, isTls): boolean, whether the client has been told to go on. To be called
// while the head of the request is being handled.
void sendContinue(const v8::FunctionCallbackInfo<v8::Value>& info) {
  const UsSockets& sockets = usSockets();
  void* const socket = socketOf(info);
  if (socket == nullptr || sockets.write == nullptr) {
    info.GetReturnValue().Set(false);
    return;
  }
  constexpr int kLength = sizeof(kContinue) - 1;
  const int ssl = info.Length() > 1 && info[1]->IsTrue() ? 1 : 0;
  info.GetReturnValue().Set(sockets.write(ssl, socket, kContinue, kLength, 0) == kLength);
}

// unsentBytes(response): number, the bytes written to the connection that its client's kernel has
// not acknowledged; -1 where that is not known. The connection must be open.
void unsentBytes(const v8::FunctionCallbackInfo<v8::Value>& info) {
  int bytes = -1;
#ifdef __linux__
  const UsSockets& sockets = usSockets();
  void* const socket = socketOf(info);
  if (socket != nullptr && sockets.nativeHandle != nullptr) {
    // Without TLS, uSockets' native handle is the descriptor. With it, the library is asked as if
    // there were none: the descriptor is the same.
    const auto descriptor =
        static_cast<int>(reinterpret_cast<std::intptr_t>(sockets.nativeHandle(0, socket)));
    if (ioctl(descriptor, SIOCOUTQ, &bytes) != 0) bytes = -1;
  }
#endif
  info.GetReturnValue().Set(bytes);
}

void setFunction(v8::Local<v8::Context> context, v8::Local<v8::Value> exports, const char* name,
                 v8::FunctionCallback callback) {
  v8::Isolate* isolate = context->GetIsolate();
  exports.As<v8::Object>()
      ->Set(context, v8::String::NewFromUtf8(isolate, name).ToLocalChecked(),
            v8::Function::New(context, callback).ToLocalChecked())
      .Check();
}

}  // namespace

NODE_MODULE_INIT(/* exports, module, context */) {
  (void)module;
  setFunction(context, exports, "connectionId", connectionId);
  setFunction(context, exports, "sendContinue", sendContinue);
  setFunction(context, exports, "unsentBytes", unsentBytes);
}
