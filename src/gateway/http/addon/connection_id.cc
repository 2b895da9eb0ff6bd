// Functions for connections that uWebSockets.js lacks. They identify a connection, send a 100
// (Continue), and report and limit the answers that the kernel still buffers. The addon has no
// state, so any number of threads may load it.

#include <node.h>

#ifdef __linux__
#include <dlfcn.h>
#include <link.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <string_view>
#endif

#include <cstdint>
#include <cstring>

namespace {

// This bit is set in a field that refers to a JavaScript value. The garbage collector moves such
// values, so their addresses identify nothing.
constexpr std::uintptr_t kHeapObjectTag = 1;

void* socketOf(const v8::FunctionCallbackInfo<v8::Value>& info) {
  if (info.Length() == 0 || !info[0]->IsObject()) return nullptr;
  const v8::Local<v8::Object> object = info[0].As<v8::Object>();
  if (object->InternalFieldCount() == 0) return nullptr;
  void* const pointer = object->GetAlignedPointerFromInternalField(0);
  return (reinterpret_cast<std::uintptr_t>(pointer) & kHeapObjectTag) == 0 ? pointer : nullptr;
}

// connectionId(response): number. Returns the same number for all responses of one open connection,
// or 0 if the object has no connection.
void connectionId(const v8::FunctionCallbackInfo<v8::Value>& info) {
  // A double can represent every address exactly, because user space has at most 2^53 addresses on
  // Node's platforms.
  info.GetReturnValue().Set(static_cast<double>(reinterpret_cast<std::uintptr_t>(socketOf(info))));
}

// The functions of uSockets (libusockets.h) that this addon uses. If the loaded library does not
// export a function, its pointer stays null.
struct UsSockets {
  void* (*nativeHandle)(int ssl, void* socket) = nullptr;
  int (*write)(int ssl, void* socket, const char* data, int length, int more) = nullptr;
  void (*timeout)(int ssl, void* socket, unsigned int seconds) = nullptr;
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
  void* const timeout = dlsym(library, "us_socket_timeout");
  dlclose(library);
  if (nativeHandle == nullptr || write == nullptr || timeout == nullptr) return 0;
  sockets->nativeHandle = reinterpret_cast<decltype(sockets->nativeHandle)>(nativeHandle);
  sockets->write = reinterpret_cast<decltype(sockets->write)>(write);
  sockets->timeout = reinterpret_cast<decltype(sockets->timeout)>(timeout);
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

// sendContinue(response, isTls): boolean. Returns whether the 100 was sent. Call it only while the
// head of the request is being handled.
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

#ifdef __linux__
// Returns -1 if the descriptor is unknown. If the ssl argument is 0, the library returns the
// descriptor as the native handle, even for a TLS socket.
int descriptorOf(void* socket) {
  const UsSockets& sockets = usSockets();
  if (socket == nullptr || sockets.nativeHandle == nullptr) return -1;
  return static_cast<int>(reinterpret_cast<std::intptr_t>(sockets.nativeHandle(0, socket)));
}

bool setOption(int descriptor, int level, int name, const void* value, socklen_t length) {
  return setsockopt(descriptor, level, name, value, length) == 0;
}
#endif

// readSendQueue(response, queue: Float64Array): boolean. Writes two numbers into the queue: the
// sent bytes that the client has not acknowledged, and the acknowledged bytes. The connection must
// be open.
void readSendQueue(const v8::FunctionCallbackInfo<v8::Value>& info) {
  info.GetReturnValue().Set(false);
#ifdef __linux__
  if (info.Length() < 2 || !info[1]->IsFloat64Array()) return;
  const v8::Local<v8::Float64Array> queue = info[1].As<v8::Float64Array>();
  if (queue->Length() < 2) return;
  const int descriptor = descriptorOf(socketOf(info));
  int unacknowledged = 0;
  if (descriptor < 0 || ioctl(descriptor, SIOCOUTQ, &unacknowledged) != 0) return;
  double values[2] = {static_cast<double>(unacknowledged), 0};
  if (unacknowledged > 0) {
    tcp_info tcp = {};
    socklen_t length = sizeof tcp;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &tcp, &length) != 0) return;
    values[1] = static_cast<double>(tcp.tcpi_bytes_acked);
  }
  auto* const bytes = static_cast<char*>(queue->Buffer()->Data()) + queue->ByteOffset();
  std::memcpy(bytes, values, sizeof values);
  info.GetReturnValue().Set(true);
#endif
}

// resetOnClose(response): boolean. Makes the kernel discard unacknowledged data when this open
// connection is closed. Otherwise, the kernel would buffer the data for minutes.
void resetOnClose(const v8::FunctionCallbackInfo<v8::Value>& info) {
  info.GetReturnValue().Set(false);
#ifdef __linux__
  const linger now = {1, 0};
  const int descriptor = descriptorOf(socketOf(info));
  if (descriptor >= 0)
    info.GetReturnValue().Set(setOption(descriptor, SOL_SOCKET, SO_LINGER, &now, sizeof now));
#endif
}

// keepOpen(response, seconds): boolean. Sets how long the connection may have no request and no
// write before the library closes it. The library may close it up to four seconds earlier.
void keepOpen(const v8::FunctionCallbackInfo<v8::Value>& info) {
  const UsSockets& sockets = usSockets();
  void* const socket = socketOf(info);
  const bool canSet =
      socket != nullptr && sockets.timeout != nullptr && info.Length() > 1 && info[1]->IsUint32();
  if (canSet) sockets.timeout(0, socket, info[1].As<v8::Uint32>()->Value());
  info.GetReturnValue().Set(canSet);
}

// limitSends(listenSocket, bytes, ms): boolean. Applies to connections that are accepted after the
// call. The kernel then buffers about `bytes` per connection. It closes a connection whose client
// acknowledges nothing for `ms`.
void limitSends(const v8::FunctionCallbackInfo<v8::Value>& info) {
  info.GetReturnValue().Set(false);
#ifdef __linux__
  if (info.Length() < 3 || !info[0]->IsExternal() || !info[1]->IsInt32() || !info[2]->IsUint32())
    return;
  const int descriptor = descriptorOf(info[0].As<v8::External>()->Value());
  const int bytes = info[1].As<v8::Int32>()->Value();
  const unsigned int ms = info[2].As<v8::Uint32>()->Value();
  if (descriptor < 0) return;
  const bool isLimited = setOption(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) &&
                         setOption(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
  info.GetReturnValue().Set(isLimited);
#endif
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
  setFunction(context, exports, "readSendQueue", readSendQueue);
  setFunction(context, exports, "resetOnClose", resetOnClose);
  setFunction(context, exports, "keepOpen", keepOpen);
  setFunction(context, exports, "limitSends", limitSends);
}
